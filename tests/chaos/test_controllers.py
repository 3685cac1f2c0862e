"""Controllers that die at the worst moment, and two of them on one database: a block is granted once and its runs are
made once."""
import contextlib

import experiments
import pytest
from cutting_proxy import CuttingProxy
from rig import wait_until
from test_kills import numbers, start_and_wait_for_samples, stored, truth_file


@pytest.fixture
def pair(rig):
    """A controller with the agent `local`, and a second controller on the same database."""
    other = rig.beside()
    try:
        other.start_controller()
        yield rig, other
    finally:
        other.close()


def grants(rig, submission):
    """How often each block of the submission was granted."""
    return [count for count, in rig.sql(
        "select (select count(*) from event where what = 'lease_granted' and (detail->>'block')::bigint = b.id) "
        "from block b where b.submission_id = %s order by b.ordinal", submission)]


def starts(path):
    """How often the generator began to count."""
    return numbers(path).count(1)


def attempts(rig, submission):
    return [(run["attempt"], run["state"]) for run in rig.runs(submission)]


def test_two_controllers_grant_each_block_once(pair):
    here, there = pair
    there.start_agent("other")
    script = "echo value 1"
    submissions = [one.submit(experiments.command(script, name=f"test/{i}", extra=f"machine: {machine}\n" if machine else ""))["id"]
                   for i, (one, machine) in enumerate([(here, ""), (there, ""), (here, "other"), (there, "local"),
                                                       (here, ""), (there, ""), (here, "other"), (there, "local")])]
    for submission in submissions:
        assert here.wait_ended(submission)["state"] == "completed", here.report(submission)
        assert grants(here, submission) == [1]
        assert attempts(there, submission) == [(1, "completed")]
    machines = {s: here.runs(s)[0]["machine"] for s in submissions}
    assert [machines[s] for s in submissions[2:4] + submissions[6:]] == ["other", "local", "other", "local"]


def test_an_agent_of_one_controller_is_followed_and_cancelled_through_the_other(pair):
    here, there = pair
    truth = truth_file(here)
    submission = there.submit(experiments.generator(truth, measure="60s"))["id"]
    run = there.runs(submission)[0]["id"]
    there.wait_run_state(run, "measuring")
    wait_until(lambda: there.get(f"/api/v1/runs/{run}/live")["samples"], 20, "its samples are seen through the other")
    assert there.call("POST", f"/api/v1/submissions/{submission}/cancel").status == 200
    assert there.wait_ended(submission, within=60)["state"] == "cancelled"
    wait_until(lambda: not here.workload_left(), 15, "nothing of it is left")


def test_a_controller_killed_mid_run_is_replaced_by_the_other(controller_rig):
    here, there = controller_rig, controller_rig.beside()
    try:
        with CuttingProxy(here.port) as proxy:  # as an address that moves
            here.enrol()
            here.lead_agent_through(proxy.port)
            here.start_agent()
            there.start_controller()
            truth = truth_file(here)
            submission, run = start_and_wait_for_samples(here, truth)
            waits = there.submit(experiments.command("echo value 1"))["id"]
            here.controller.kill()
            proxy.target_port = there.port
            assert there.wait_ended(submission)["state"] == "completed", there.controller.log_text()[-3000:]
            assert attempts(there, submission) == [(1, "completed")]
            assert grants(there, submission) == [1]
            assert stored(there, run) == numbers(truth)
            assert there.wait_ended(waits)["state"] == "completed"
            here.start_controller()  # for the rig to stop
    finally:
        there.close()


def test_a_controller_killed_mid_run_and_started_again_beside_the_other(pair):
    here, there = pair
    truth = truth_file(here)
    submission, run = start_and_wait_for_samples(here, truth, measure="4s")
    here.controller.kill()
    waits = there.submit(experiments.command("echo value 1"))["id"]
    wait_until(lambda: not here.workload_left(), 30, "the run has ended by itself")
    # The other may call the machine silent meanwhile. It never takes the block from it.
    assert there.get("/api/v1/machines/local")["lease"]["submission"] == submission
    here.start_controller()
    for one in (submission, waits):
        assert there.wait_ended(one)["state"] == "completed", here.report(one)
        assert attempts(there, one) == [(1, "completed")] and grants(there, one) == [1]
    assert stored(there, run) == numbers(truth)


def test_a_grant_whose_word_never_arrived_is_told_again_after_a_restart(controller_rig):
    rig = controller_rig
    with CuttingProxy(rig.port) as proxy:
        rig.enrol()
        rig.lead_agent_through(proxy.port)
        rig.start_agent()
        truth = truth_file(rig)
        proxy.swallow = True
        submission = rig.submit(experiments.generator(truth, measure="2s"))["id"]
        wait_until(lambda: rig.sql("select 1 from lease where state = 'granted'"), 20, "the lease is granted")
        rig.controller.kill()
        proxy.swallow, proxy.cut_now = False, True
        assert attempts(rig_started(rig), submission) == [(1, "assigned")]
        assert rig.wait_ended(submission)["state"] == "completed", rig.report(submission)
        assert attempts(rig, submission) == [(1, "completed")]
        assert grants(rig, submission) == [1] and starts(truth) == 1


def rig_started(rig):
    rig.start_controller()
    return rig


@contextlib.contextmanager
def locked(rig, submission):
    """Another session that has the submission locked: whoever would end it waits."""
    connection = rig.postgres.connect(rig.database)
    connection.autocommit = False
    try:
        connection.cursor().execute("select from submission where id = %s for update", (submission,))
        yield
    finally:
        connection.rollback()
        connection.close()


def test_a_controller_killed_between_grant_and_prepare_block_tells_it_after_its_restart(rig):
    """One look of the scheduler grants, then ends submissions that are done, and speaks to agents last. While another
    session has a submission locked the look stays between the two."""
    rig.enrol("away")
    blocker = rig.submit(experiments.command("echo value 1", extra="machine: away\n"))["id"]
    for _ in range(4):  # a look that was under way already may grant and speak before the lock counts
        truth = truth_file(rig)
        assert rig.cli("machines", "hold", "local", "--reason", "the test").returncode == 0
        submission = rig.submit(experiments.generator(truth, measure="2s"))["id"]
        with locked(rig, blocker):
            assert rig.call("POST", "/api/v1/machines/local/release").status == 200
            wait_until(lambda: rig.sql("select 1 from lease"), 40, "the lease is granted")
            rig.controller.kill()
        unsaid = rig.sql("select state from lease") == [("granted",)] and starts(truth) == 0
        rig.start_controller()
        assert rig.wait_ended(submission)["state"] == "completed", rig.report(submission)
        assert attempts(rig, submission) == [(1, "completed")]
        assert grants(rig, submission) == [1] and starts(truth) == 1
        if unsaid:
            return
    raise AssertionError("the controller never stayed between the grant and its word")
