"""Things go wrong: in each case a clear state and reason, nothing left running, nothing lost."""
import os
import pathlib
import signal
import tempfile

import experiments
from rig import wait_until


def the_run(rig, text, within=120):
    _, runs = rig.run(text, within)
    assert rig.workload_left() == []
    return runs[0]


def artifact_text(rig, run, word):
    items = [a for a in rig.get(f"/api/v1/runs/{run['id']}/artifacts")["items"] if word in a["name"]]
    return b"".join(rig.call("GET", f"/api/v1/artifacts/{a['id']}").body for a in items).decode(errors="replace")


def test_a_service_that_dies_before_it_is_ready_fails_the_run_with_its_last_words(rig):
    run = the_run(rig, experiments.service("echo about to fall over >&2; exit 3", '{tcp: "127.0.0.1:${port.http}", within: 20s}'))
    assert run["state"] == "failed"
    assert "server" in run["reason"] and "exit 3" in run["reason"], run["reason"]
    assert "about to fall over" in run["reason"] + artifact_text(rig, run, "server")


def test_a_service_that_never_gets_ready_fails_the_run_at_its_deadline(rig):
    run = the_run(rig, experiments.service("exec sleep 600", '{tcp: "127.0.0.1:${port.http}", within: 2s}'))
    assert run["state"] == "failed"
    assert "ready" in run["reason"] and "2s" in run["reason"], run["reason"]


def test_a_service_that_dies_during_measure_fails_the_run(rig):
    run = the_run(rig, experiments.service("echo up; sleep 2; exit 7", "{log: '^up$', within: 10s}", measure="1s").replace(
        "sleep 1; echo value 7", "sleep 5; echo value 7").replace("measure: 1s", "measure: 5s"))
    assert run["state"] == "failed"
    assert "server" in run["reason"] and "exit 7" in run["reason"], run["reason"]


def test_readiness_by_log_line_and_by_command(rig):
    assert the_run(rig, experiments.service("echo now serving; exec sleep 600", "{log: 'now serv.*', within: 10s}"))["state"] == "completed"
    run = the_run(rig, experiments.service("touch here; exec sleep 600", "{command: [test, -e, here], within: 10s}"))
    assert run["state"] == "completed", run["reason"]


def test_a_flood_of_log_lines_is_bounded_and_says_what_was_dropped(rig):
    run = the_run(rig, experiments.service(
        "echo first line; yes a flood of words that never ends and says nothing at all | head -c 60000000; echo; echo up; exec sleep 600",
        "{log: '^up$', within: 60s}"), within=180)
    assert run["state"] == "completed", run["reason"]
    text = artifact_text(rig, run, "server")
    assert text.startswith("first line")
    assert len(text) < 100 << 20 and "dropped" in text


def test_a_tool_that_hangs_is_ended_at_its_deadline(rig):
    run = the_run(rig, experiments.command("exec sleep 600", measure="1s", options="    at_most: 3s"))
    assert run["state"] == "failed"
    assert "script" in run["reason"] and ("hung" in run["reason"] or "within" in run["reason"]), run["reason"]


def test_a_tool_that_prints_garbage_fails_the_run_and_its_output_is_kept(rig):
    run = the_run(rig, experiments.command("head -c 5000 /dev/urandom; echo; echo no number here"))
    assert run["state"] == "failed"
    assert "value" in run["reason"], run["reason"]
    assert "no number here" in artifact_text(rig, run, "script")


def test_a_tool_that_fails_although_it_printed_a_number_fails_the_run(rig):
    run = the_run(rig, experiments.command("echo value 7; exit 9"))
    assert run["state"] == "failed" and "status 9" in run["reason"], run["reason"]


def test_wrk_without_a_server_is_no_result(rig):
    text = experiments.web(connections=(1,)).replace("url: http://127.0.0.1:${port.http}/", "url: http://127.0.0.1:1/")
    run = the_run(rig, text)
    assert run["state"] == "failed", run
    assert "wrk" in run["reason"], run["reason"]


def test_a_program_that_is_not_there_is_named(rig):
    run = the_run(rig, experiments.web(connections=(1,)).replace("/usr/sbin/nginx", "/usr/sbin/no-such-server"))
    assert run["state"] in ("failed", "refused")
    assert "no-such-server" in run["reason"], run["reason"]


def test_a_failing_build_fails_the_run_with_what_it_printed(rig):
    run = the_run(rig, experiments.command("echo value 1", extra='build: [{command: [sh, -c, "echo compiling; echo broken >&2; exit 4"]}]\n'))
    assert run["state"] == "failed" and "exit 4" in run["reason"], run["reason"]
    assert "broken" in run["reason"] + artifact_text(rig, run, "build")


def test_daemons_that_detach_are_ended_with_the_run(rig):
    script = "(setsid sh -c 'setsid sleep 613 & setsid sleep 614' >/dev/null 2>&1 &); echo value 1"
    run = the_run(rig, experiments.command(script))
    assert run["state"] == "completed", run["reason"]
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                assert b"sleep\x00613" not in (entry / "cmdline").read_bytes()
            except OSError:
                pass


def test_cancel_ends_a_run_within_seconds_in_whatever_phase(rig):
    submission = rig.submit(experiments.web(connections=(1, 2, 5), measure="60s"))["id"]
    run = rig.runs(submission)[0]["id"]
    rig.wait_run_state(run, "measuring")
    assert rig.call("POST", f"/api/v1/submissions/{submission}/cancel").status == 200
    document = rig.wait_ended(submission, within=30)
    assert document["state"] == "cancelled"
    assert {r["state"] for r in rig.runs(submission)} == {"cancelled"}
    assert rig.workload_left() == []
    wait_until(lambda: not rig.cgroups_left(), 10, "its cgroups are gone")
    # and the machine is free again
    assert rig.run(experiments.command("echo value 1"))[0]["state"] == "completed"


def test_one_failed_run_does_not_throw_the_rest_away(rig):
    text = experiments.command("test $LEVEL = bad && exit 1; echo value 5", options='    environment: {LEVEL: "${level}"}').replace(
        "name: test/command", "name: test/command\nfactors: {level: [good, bad, fine]}")
    submission, runs = rig.run(text)
    assert [r["state"] for r in runs] == ["completed", "failed", "completed"]
    assert submission["state"] == "failed"
    assert all(r["attempt"] == 1 for r in runs)  # a result is never retried


def test_an_agent_that_is_told_to_end_leaves_nothing_and_the_block_goes_on_later(rig):
    submission = rig.submit(experiments.web(connections=(1,), measure="30s"))["id"]
    rig.wait_run_state(rig.runs(submission)[0]["id"], "measuring")
    rig.agents["local"].stop(within=15)
    wait_until(lambda: not rig.workload_left(), 10, "nothing of the run is left")
    rig.start_agent()
    document = rig.wait_ended(submission, within=120)
    assert document["state"] == "completed", rig.report(submission)
    assert [(r["attempt"], r["state"]) for r in rig.runs(submission)] == [(1, "interrupted"), (2, "completed")]
