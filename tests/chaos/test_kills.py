"""Whoever dies: nothing measured is lost or counted twice, and nothing is left running.

The truth is what the sample generator wrote down itself (one number a line, before it prints it), or, where the agent
dies with lines still in a pipe, what lay in its spool at the moment of the kill.
"""
import os
import pathlib
import shutil
import signal as signal_module
import struct
import time

import experiments
import pytest
from rig import Rig, wait_until


def truth_file(rig):
    folder = rig.folder / "truth"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    return folder / f"numbers-{time.monotonic_ns()}"


def numbers(path):
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def stored(rig, run):
    """Every sample of the generator's series that the database holds for a run, sealed or live, by time."""
    series = [s for s in rig.get(f"/api/v1/runs/{run}/series")["items"] if s["name"] == "counted"]
    assert len(series) == 1, series
    samples = rig.get(f"/api/v1/runs/{run}/series/{series[0]['machine']}/{series[0]['id']}/samples")
    assert sorted(samples["time_ns"]) == samples["time_ns"]
    return [int(v) for v in samples["values"]]


def spooled(folder, run, series):
    """The numbers of one series of a run that a spool's files hold, in order (format: common/protocol)."""
    found = []
    for segment in sorted(folder.rglob("*.seg"), key=lambda p: (int(p.parent.name), int(p.stem))):
        data = segment.read_bytes()
        at = 0
        while at + 17 <= len(data):
            length, = struct.unpack_from("<I", data, at)
            if at + 8 + length > len(data):
                break
            kind = data[at + 8]
            payload = data[at + 17:at + 8 + length]
            at += 8 + length
            if kind == 2:
                _, of, _, count = struct.unpack_from("<BqqI", payload, 0)
                samples = [struct.unpack_from("<Id", payload, 21 + 12 * i) for i in range(count)]
                found += [int(value) for one, value in samples if of == run and one == series]
    return found


def start_and_wait_for_samples(rig, truth, measure="8s", at_least=50):
    submission = rig.submit(experiments.generator(truth, measure=measure))["id"]
    run = rig.runs(submission)[0]["id"]
    rig.wait_run_state(run, "measuring")
    wait_until(lambda: len(numbers(truth)) >= at_least, 30, "the generator counts")
    return submission, run


def test_a_controller_killed_during_measure_disturbs_nothing(rig):
    truth = truth_file(rig)
    submission, run = start_and_wait_for_samples(rig, truth)
    rig.controller.kill()
    counted = len(numbers(truth))
    wait_until(lambda: len(numbers(truth)) > counted + 50, 20, "the run goes on without a controller")
    rig.start_controller()
    document = rig.wait_ended(submission)
    assert document["state"] == "completed", rig.report(submission)
    assert [(r["attempt"], r["state"]) for r in rig.runs(submission)] == [(1, "completed")]
    assert stored(rig, run) == numbers(truth)
    total = next(m for m in rig.get(f"/api/v1/runs/{run}/metrics")["items"] if m["name"] == "total")
    assert total["value"] == len(numbers(truth))


def test_a_controller_killed_again_and_again(rig):
    truth = truth_file(rig)
    submission, run = start_and_wait_for_samples(rig, truth, measure="10s")
    for _ in range(4):
        rig.controller.kill()
        rig.start_controller()
        counted = len(numbers(truth))
        wait_until(lambda: len(numbers(truth)) > counted + 20 or rig.runs(submission)[0]["state"] == "completed", 20, "it counts on")
    assert rig.wait_ended(submission)["state"] == "completed", rig.report(submission)
    assert stored(rig, run) == numbers(truth)


def test_a_controller_away_until_after_the_run(rig):
    truth = truth_file(rig)
    submission, run = start_and_wait_for_samples(rig, truth, measure="4s")
    rig.controller.kill()
    wait_until(lambda: not rig.workload_left(), 30, "the run has ended by itself")
    rig.start_controller()
    assert rig.wait_ended(submission)["state"] == "completed", rig.report(submission)
    assert stored(rig, run) == numbers(truth)


def test_an_agent_killed_during_measure_loses_nothing_that_it_had_spooled(rig):
    truth = truth_file(rig)
    submission, run = start_and_wait_for_samples(rig, truth)
    rig.controller.kill()  # so that what is spooled from here on can only come from the spool
    counted = len(numbers(truth))
    wait_until(lambda: len(numbers(truth)) > counted + 50, 20, "it counts on")
    rig.agents["local"].kill()
    copy = rig.folder / "spool-at-the-kill"
    shutil.copytree(rig.agent_folder("local") / "state" / "spool", copy)
    wait_until(lambda: not rig.workload_left(), 15, "everything that the agent had started is gone")
    wait_until(lambda: not rig.cgroups_left(), 10, "its cgroups are gone")
    rig.start_controller()
    series, = [s["id"] for s in rig.get(f"/api/v1/runs/{run}/series")["items"] if s["name"] == "counted"]
    before = spooled(copy, run, series)
    rig.start_agent()
    document = rig.wait_ended(submission, within=120)
    runs = rig.runs(submission)
    assert [(r["attempt"], r["state"]) for r in runs] == [(1, "interrupted"), (2, "completed")], rig.report(submission)
    assert document["state"] == "completed"
    got = stored(rig, run)
    # The spool held a tail that the controller had not acknowledged; nothing of it may be missing, nothing twice.
    assert before and got[-len(before):] == before
    assert got == list(range(1, len(got) + 1))
    assert stored(rig, runs[1]["id"]) == list(range(1, len(stored(rig, runs[1]["id"])) + 1))


@pytest.mark.parametrize("victims", ["perfrig-warden", "perfrig-helper", "perfrig-guard", "perfrig-helper perfrig-guard"])
def test_whoever_watches_the_run_is_killed_it_ends_as_interrupted_and_nothing_is_left(rig, victims):
    truth = truth_file(rig)
    submission, run = start_and_wait_for_samples(rig, truth)
    agent = rig.agents["local"]
    watchers = [p for p in descendants_of(agent.pid) if name_of(p) in victims.split()]
    assert len(watchers) == len(victims.split())
    for signal in (signal_module.SIGSTOP, signal_module.SIGKILL):  # so that none sees another's end before its own
        for pid in watchers:
            os.kill(pid, signal)
    wait_until(lambda: not rig.workload_left(), 15, "everything that the agent had started is gone")
    if victims != "perfrig-guard":
        agent.process.wait(20)  # it can't go on without its helper, and says so
        wait_until(lambda: not rig.cgroups_left(), 10, "its cgroups are gone")
        rig.start_agent()
    rig.wait_ended(submission, within=120)
    assert [(r["attempt"], r["state"]) for r in rig.runs(submission)] == [(1, "interrupted"), (2, "completed")], rig.report(submission)


def descendants_of(pid):
    children = [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and parent_of(p.name) == pid]
    return children + [below for child in children for below in descendants_of(child)]


def name_of(pid):
    return (pathlib.Path("/proc") / str(pid) / "comm").read_text().strip()


def parent_of(pid):
    try:
        return int((pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def test_postgres_away_for_a_while_loses_nothing(own_postgres):
    rig = Rig(own_postgres)
    try:
        rig.start_controller()
        rig.start_agent()
        truth = truth_file(rig)
        submission, run = start_and_wait_for_samples(rig, truth, measure="12s")
        own_postgres.stop("immediate")
        counted = len(numbers(truth))
        assert rig.call("GET", "/healthz", token=None).status == 503
        assert rig.call("GET", "/api/v1/runs").status == 503
        wait_until(lambda: len(numbers(truth)) > counted + 150, 20, "the run goes on without a database")
        own_postgres.start()
        assert rig.wait_ended(submission)["state"] == "completed", rig.report(submission)
        assert [(r["attempt"], r["state"]) for r in rig.runs(submission)] == [(1, "completed")]
        assert stored(rig, run) == numbers(truth)
    finally:
        rig.close()


def test_a_link_that_is_cut_again_and_again_loses_and_doubles_nothing(controller_rig):
    from cutting_proxy import CuttingProxy
    with CuttingProxy(controller_rig.port) as proxy:
        rig = controller_rig
        rig.enrol()
        config = rig.agent_folder("local") / "agent.yaml"
        config.write_text(config.read_text().replace(f"127.0.0.1:{rig.port}", f"127.0.0.1:{proxy.port}"))
        rig.start_agent()
        truth = truth_file(rig)
        submission, run = start_and_wait_for_samples(rig, truth, measure="10s")
        proxy.cut_every(0.7)
        assert rig.wait_ended(submission)["state"] == "completed", rig.report(submission)
        proxy.cut_every(None)
        assert proxy.cuts > 5
        assert stored(rig, run) == numbers(truth)
