"""What the queue tells those who wait, and machines that come and go."""
import csv
import io
import json
import subprocess
import time

import experiments
from rig import BIN, wait_until
from test_cli import file


def waiting(rig, submission):
    return rig.get(f"/api/v1/submissions/{submission}")["waiting"]


def test_a_submission_that_waits_for_a_held_machine_says_so_everywhere(rig):
    rig.cli("machines", "hold", "local", "--reason", "firmware update", check=0)
    path = file(rig, experiments.command("echo value 1"))
    process = subprocess.Popen([BIN / "perfrig", "--url", rig.url, "--token-file", rig.folder / "token", "run", path],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        submission = wait_until(lambda: rig.get("/api/v1/submissions")["items"], 30, "it is queued")[0]["id"]
        document = waiting(rig, submission)
        assert document["machines"][0]["why"] == "held" and document["blocks_ahead"] == 0
        assert "local is held by user" in document["text"] and "firmware update" in document["text"]
        assert "firmware update" in rig.cli("status", str(submission), check=0).stdout
        assert f"{submission} waits: local is held" in rig.cli("status", check=0).stdout
        behind = rig.submit(experiments.command("echo value 1"))["id"]
        assert "1 block is ahead" in waiting(rig, behind)["text"]
        time.sleep(1.5)  # two polls: the same reason is said once
        rig.cli("machines", "release", "local", check=0)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
    lines = [line for line in out.splitlines() if line.startswith("waits: ")]
    assert len(lines) == 1 and "firmware update" in lines[0], out
    assert rig.wait_ended(submission)["waiting"] is None


def test_a_submission_that_waits_says_with_what_its_machine_is_busy_and_for_whom_nobody_came(rig):
    first = rig.submit(experiments.command("sleep 5; echo value 1", measure="5s"))["id"]
    rig.wait_run_state(rig.runs(first)[0]["id"], "measuring")
    assert waiting(rig, first) is None
    second = rig.submit(experiments.command("echo value 1"))["id"]
    assert f"busy with submission {first} until about" in waiting(rig, second)["text"]
    rig.enrol("away")
    third = rig.submit(experiments.command("echo value 1", extra="machine: away\n"))["id"]
    assert waiting(rig, third)["machines"][0]["why"] == "never_joined"
    for submission in (first, second):
        assert rig.wait_ended(submission)["state"] == "completed"


def test_a_silent_machine_is_named_with_the_time(rig):
    rig.agents["local"].stop()
    submission = rig.submit(experiments.command("echo value 1"))["id"]
    seen = rig.get("/api/v1/machines/local")["last_seen"]
    wait_until(lambda: "silent since " + seen[:19] in waiting(rig, submission)["text"], 40, "it is called silent")
    rig.start_agent()
    assert rig.wait_ended(submission)["state"] == "completed"


def test_a_machine_that_is_gone_is_forgotten_and_its_runs_are_not(rig):
    submission, runs = rig.run(experiments.command("echo value 7"))
    refused = rig.cli("machines", "forget", "local", check=2)
    assert "connected" in refused.stderr, refused.stderr
    token = (rig.agent_folder("local") / "state" / "token").read_text().strip()
    rig.agents["local"].stop()
    wait_until(lambda: rig.cli("machines", "forget", "local").returncode == 0, 40, "it is silent for long enough", every=1)
    assert rig.cli("machines", "forget", "local", check=2).stderr
    assert rig.get("/api/v1/machines")["items"] == []
    assert rig.call("GET", "/api/v1/machines/local").status == 404
    wait_until(lambda: rig.call("HEAD", "/agent/v1/runs/1/artifacts/x", token=token).status == 401, 10, "its token is worth nothing")
    assert rig.get(f"/api/v1/runs/{runs[0]['id']}")["machine"] == "local"
    assert [r["id"] for r in rig.get("/api/v1/runs?machine=local")["items"]] == [runs[0]["id"]]
    assert rig.sql("select count(*) from event where what = 'forgotten' and subject = 'machine/local' and actor like 'user %%'") == [(1,)]
    rig.agents.pop("local")
    (rig.folder / "agent-local").rename(rig.folder / "old-agent")
    rig.start_agent()  # joins anew, under the same name
    assert rig.run(experiments.command("echo value 8"))[0]["state"] == "completed"


def test_results_and_samples_come_in_pages(rig):
    submission, runs = rig.run(experiments.web(connections=(1, 2, 3), measure="1s"))
    target = f"/api/v1/submissions/{submission['id']}/results"
    whole, first = rig.get(target), rig.get(target + "?limit=2")
    assert whole["next"] is None and len(first["rows"]) == 2
    rest = rig.get(f"{target}?limit=2&after={first['next']}")
    assert rest["next"] is None and first["rows"] + rest["rows"] == whole["rows"]
    series = next(s for s in rig.get(f"/api/v1/runs/{runs[0]['id']}/series")["items"] if s["name"] == "cpu_user_seconds")
    samples = f"/api/v1/runs/{runs[0]['id']}/series/{series['machine']}/{series['id']}/samples"
    all_of, page = rig.get(samples), rig.get(samples + "?limit=1")
    assert len(page["time_ns"]) == 1 and all_of["next"] is None
    assert page["time_ns"] + rig.get(f"{samples}?after={page['next']}")["time_ns"] == all_of["time_ns"]


def test_the_id_file_names_the_submission_of_this_call(rig):
    rig.cli("run", file(rig, experiments.command("echo value 7")), "--id-file", str(rig.folder / "id"), check=0)
    rig.cli("run", file(rig, experiments.command("echo value 8")), check=0)
    mine = (rig.folder / "id").read_text().strip()
    rows = list(csv.DictReader(io.StringIO(rig.cli("results", mine, "--format", "csv", check=0).stdout)))
    assert rows[0]["value.median [count]"] == "7.0", rows[0]
    rig.cli("submit", file(rig, experiments.command("echo value 9")), "--id-file", str(rig.folder / "id"), check=0)
    assert json.loads((rig.folder / "id").read_text()) == rig.get("/api/v1/submissions")["items"][0]["id"]


def start(rig, *arguments):
    return subprocess.run([BIN / "perfrig-controller", "--listen", f"127.0.0.1:{rig.port}", *arguments], capture_output=True,
                          text=True, timeout=60)


def test_a_database_that_can_never_be_reached_is_not_waited_for(bare_rig):
    for text, word in (("nonsense", "nonsense"), ("host=/tmp port=99999", "99999"), ("host=/tmp sslmode=perhaps", "perhaps")):
        done = start(bare_rig, "--database", text, "--database-wait", "1h")
        assert done.returncode == 2 and word in done.stdout + done.stderr, (text, done.stdout + done.stderr)


def test_a_database_that_may_come_is_waited_for_with_the_reason_told_once(bare_rig):
    unknown = bare_rig.dsn.replace(bare_rig.database, "not_made_yet")
    done = start(bare_rig, "--database", unknown, "--database-wait", "2s")
    said = done.stdout + done.stderr
    assert done.returncode == 3 and "not_made_yet" in said and said.count("waiting for the database") == 1, said
