"""The command line as people and Jenkins call it."""
import csv
import http.server
import io
import json
import os
import re
import signal
import subprocess
import threading
import xml.etree.ElementTree as xml

import experiments
from rig import BIN, ROOT, wait_until


def file(rig, text, name="experiment.yaml"):
    path = rig.folder / name
    path.write_text(text)
    return str(path)


def test_run_prints_the_table_and_writes_junit(rig):
    done = rig.cli("run", file(rig, experiments.web(connections=(1, 3))), "--junit", str(rig.folder / "junit.xml"), check=0)
    assert "connections" in done.stdout and "requests" in done.stdout
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"submission \d+ of \S+, 2 runs, about \d+ s, until \d\d:\d\d", lines[0]), lines
    assert [re.match(r"\d/2  run \d+  connections=\d #1  completed", l) is not None for l in lines[1:3]] == [True, True], lines
    assert "\x1b" not in done.stdout  # not a terminal: no colours, no bars
    suite = xml.parse(rig.folder / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    rows = list(csv.DictReader(io.StringIO(rig.cli("results", "--format", "csv", check=0).stdout)))
    assert [row["connections"] for row in rows] == ["1", "3"]
    assert all(0 < float(row["requests_per_second.min [1/s]"]) <= float(row["requests_per_second.median [1/s]"]) for row in rows)
    single = list(csv.DictReader(io.StringIO(rig.cli("results", "--format", "csv-runs", check=0).stdout)))
    assert [(row["connections"], row["state"]) for row in single] == [("1", "completed"), ("3", "completed")]
    assert [row["requests_per_second [1/s]"] for row in single] == [row["requests_per_second.max [1/s]"] for row in rows]
    # load and monitor share a CPU: what every run says stands below the table once, and in JUnit with each run.
    assert done.stdout.count("shared_cpus") == 1 and "every run" in done.stdout, done.stdout
    assert all("shared_cpus" in case.findtext("system-out", "") for case in suite.iter("testcase"))
    assert all(int(row["findings"]) > 0 for row in rows + single)
    assert json.loads(rig.cli("results", "--format", "json", check=0).stdout)["rows"]
    assert rig.cli("results", "--format", "markdown", check=0).stdout.startswith("| ")


def test_output_that_could_not_be_written_is_no_success(rig):
    path = file(rig, experiments.command("echo value 7"))
    done = rig.cli("run", path, "--junit", "/nowhere/junit.xml", check=2)
    assert "/nowhere/junit.xml" in done.stderr and "value" in done.stdout, done  # the table all the same
    with open("/dev/full", "w") as full:
        for words in (["results", "--format", "csv"], ["validate", path]):
            cut = subprocess.run([BIN / "perfrig", "--url", rig.url, "--token-file", rig.folder / "token", *words],
                                 stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            assert cut.returncode == 3 and "standard output" in cut.stderr, cut


def test_a_failed_run_ends_with_1_and_names_the_reason(rig):
    done = rig.cli("run", file(rig, experiments.command("exit 5")), "--junit", str(rig.folder / "j.xml"), check=1)
    assert "status 5" in done.stdout
    assert xml.parse(rig.folder / "j.xml").getroot().get("failures") == "1"
    listed = rig.cli("status", check=0).stdout.splitlines()
    assert listed[0].split()[:5] == ["id", "experiment", "state", "priority", "runs"] and listed[1].split()[4] == "1", listed
    assert "block 1: done" in rig.cli("status", listed[1].split()[0], check=0).stdout


def test_bad_input_ends_with_2_and_shows_every_place(controller_rig):
    bad = file(controller_rig, experiments.web().replace("tools:", "tolls:"))
    done = controller_rig.cli("run", bad, check=2)
    line = next(i for i, l in enumerate(experiments.web().splitlines(), 1) if l.startswith("tools:"))
    assert f"{bad}:{line}:1" in done.stderr and "tools" in done.stderr, done.stderr
    assert controller_rig.cli("validate", bad, check=2).stderr.count(f"{bad}:{line}:1") == 1
    assert controller_rig.cli("run", "/nowhere.yaml", check=2).stderr
    assert controller_rig.cli("fly", check=2)
    assert controller_rig.get("/api/v1/submissions")["items"] == []


def test_wrong_arguments_are_named_with_what_would_do():
    def said(*words):
        done = subprocess.run([BIN / "perfrig", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and done.stdout == "", done
        return done.stderr

    assert "needs a command: up, down" in said()
    assert "'frobnicate'" in said("frobnicate") and "machines" in said("frobnicate")
    assert "'statsu'; did you mean 'status'?" in said("statsu")
    assert "'lst'; did you mean 'list'?" in said("machines", "lst")
    assert "--fromat; did you mean '--format'?" in said("results", "--fromat", "csv")
    assert "'xml'" in said("results", "--format", "xml") and "csv-runs, markdown" in said("results", "--format", "xml")
    assert "'abc' is no submission's number: see perfrig status" in said("results", "abc")
    for insides in ("ENUM", "SUBCOMMAND is", "subcommand is", "convert"):
        for words in ((), ("results", "abc"), ("run", "x", "--priority", "y"), ("results", "--format", "xml")):
            assert insides not in said(*words)
    shown = subprocess.run([BIN / "perfrig", "run", "--help"], capture_output=True, text=True, timeout=60).stdout
    assert "--format table|json|csv|csv-runs|markdown" in shown and "--priority -1000..1000" in shown, shown


def test_a_controller_that_is_away_ends_with_3(bare_rig):
    said = bare_rig.cli("status", check=3).stderr
    assert f"no controller answers at {bare_rig.url}: start one with `perfrig up`, or name one with --url" in said


def test_what_the_controller_refuses_is_said_in_its_own_words(controller_rig):
    said = controller_rig.cli("wait", "99", check=2).stderr
    assert said.startswith("perfrig: can't find the submission 99: there is none") and "/api/" not in said, said


def test_another_server_than_a_controller_is_named_as_such(tmp_path):
    (tmp_path / "token").write_text("none")

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        status = 404

        def do_GET(self):
            self.send_response(self.status)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for Elsewhere.status in (404, 200):
            url = f"http://127.0.0.1:{server.server_port}"
            done = subprocess.run([BIN / "perfrig", "--url", url, "--token-file", tmp_path / "token", "status"],
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode == 2 and f"what answers at {url} is not a perfrig controller's API" in done.stderr, done
    finally:
        server.shutdown()
        server.server_close()


def test_a_wrong_token_says_what_to_do(controller_rig):
    (controller_rig.folder / "other").write_text("nonsense")
    done = subprocess.run([BIN / "perfrig", "--url", controller_rig.url, "--token-file", controller_rig.folder / "other", "status"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--token-file" in done.stderr


def test_validate_and_plan_need_no_controller():
    for path in sorted((ROOT / "deploy/experiments").glob("*.yaml")):
        done = subprocess.run([BIN / "perfrig", "validate", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    done = subprocess.run([BIN / "perfrig", "plan", ROOT / "deploy/experiments/web-scaling.yaml"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "6 cells, 12 runs in 1 block" in done.stdout, done.stdout


def test_jenkins_abort_cancels_the_submission(rig):
    path = file(rig, experiments.web(connections=(1,), measure="60s"))
    process = subprocess.Popen([BIN / "perfrig", "--url", rig.url, "--token-file", rig.folder / "token", "run", path],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        submission = wait_until(lambda: rig.get("/api/v1/submissions")["items"], 30, "it is queued")[0]["id"]
        rig.wait_run_state(rig.runs(submission)[0]["id"], "warming", "measuring")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    finally:
        process.kill()
        process.communicate()
    assert rig.get(f"/api/v1/submissions/{submission}")["state"] == "cancelled"
    assert rig.workload_left() == []


def test_machines_list_hold_and_release(rig):
    assert "local" in rig.cli("machines", "list", check=0).stdout
    rig.cli("machines", "hold", "local", "--reason", "firmware update", check=0)
    listed = rig.cli("machines", "list", check=0).stdout
    assert "firmware update" in listed and not re.search(r":\d\d\.\d+Z", listed), listed
    rig.cli("machines", "release", "local", check=0)
    assert json.loads(rig.cli("machines", "show", "local", check=0).stdout)["state"] == "idle"
    assert rig.cli("machines", "show", "nobody-knows", check=2).stderr


def test_doctor_says_what_this_machine_can_do(rig):
    done = subprocess.run([BIN / "perfrig-agent", "doctor", "--config", rig.agent_folder("local") / "agent.yaml"],
                          capture_output=True, text=True, timeout=120)
    for word in ("cgroup", "speculation", "wrk", "pgbench", "controller"):
        assert word in done.stdout, done.stdout
    # Without a word it looks at what `perfrig up` wrote, and not at every folder that happens to be there.
    alone = subprocess.run([BIN / "perfrig-agent", "doctor"], capture_output=True, text=True, timeout=120,
                           env={**os.environ, "PERFRIG_DIR": str(rig.agent_folder("local"))})
    assert f"configuration: {rig.agent_folder('local')}/agent.yaml, as `perfrig up` wrote it" in alone.stdout, alone.stdout
