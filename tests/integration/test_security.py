"""Who is let in, who is not, and that those who are not do no harm."""
import json
import resource
import shutil
import socket
import subprocess
import threading
import time

import pytest
from raw_websocket import RawWebSocket
from rig import AGENT_USER, AM_ROOT, BIN, Process, free_port, wait_until

JSON = {"Content-Type": "application/json"}


def post(rig, target, document, token=""):
    body = document if isinstance(document, (str, bytes)) else json.dumps(document)
    return rig.call("POST", target, body, JSON, token=token)


def token_of(rig, name="local"):
    return (rig.agent_folder(name) / "state" / "token").read_text().strip()


def connected(rig, name="local"):
    return rig.get(f"/api/v1/machines/{name}")["connected"]


def events(rig, subject):
    return [what for what, in rig.sql("select what from event where subject = %s order by id", subject)]


# --- half-open connections ----------------------------------------------------------------------------------------
def test_a_thousand_half_open_requests_shut_nobody_out(rig):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    beginnings = [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: ", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
                  b"POST /agent/v1/join HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"]
    sockets = []
    try:
        for i in range(1000):
            sockets.append(socket.create_connection(("127.0.0.1", rig.port), 10))
            sockets[-1].sendall(beginnings[i % len(beginnings)])
        for target, token in (("/healthz", None), ("/api/v1/machines/local", "")) * 3:
            began = time.monotonic()
            assert rig.call("GET", target, token=token).status == 200
            assert time.monotonic() - began < 1, target
        assert connected(rig)
    finally:
        for one in sockets:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "the agent of local is gone" not in rig.controller.log_text()


# --- tokens -------------------------------------------------------------------------------------------------------
def hash_of_agents_token(rig, name="local"):
    return next(t["hash"] for t in rig.get("/api/v1/tokens")["items"] if t.get("machine") == name and not t["revoked_at"])


def test_revoking_an_agents_token_cuts_its_link_at_once_and_it_says_why(rig):
    assert rig.call("DELETE", f"/api/v1/tokens/{hash_of_agents_token(rig)}").status == 204
    wait_until(lambda: not connected(rig), 1, "the link is cut")
    wait_until(lambda: "revoked" in rig.agents["local"].log_text(), 5, "the agent says why")
    assert "revoked" in rig.controller.log_text()
    time.sleep(2)
    assert not connected(rig)


def test_a_token_that_another_controller_revokes_is_noticed_within_a_heartbeat_or_two(rig):
    port = free_port()
    other = Process("second controller", [BIN / "perfrig-controller", "--listen", f"127.0.0.1:{port}", "--database", rig.dsn,
                                          "--admin-token-file", rig.folder / "token"], rig.folder / "second.log")
    try:
        hash_ = hash_of_agents_token(rig)
        mine, rig.url = rig.url, f"http://127.0.0.1:{port}"

        def revoked():
            try:
                return rig.call("DELETE", f"/api/v1/tokens/{hash_}").status == 204
            except OSError:
                return False
        wait_until(revoked, 30, "the second controller revokes it")
        rig.url = mine
        wait_until(lambda: not connected(rig), 6, "the link is cut")
    finally:
        assert other.stop() == 0


def test_a_join_token_takes_no_machines_name(rig):
    join = rig.make_token("join")
    refused = post(rig, "/agent/v1/join", {"machine": "local"}, join)
    assert refused.status == 409 and "machines forget local" in refused.json["remedy"], refused.body
    guessed = post(rig, "/agent/v1/join", {"machine": "local", "current_token": rig.token}, join)
    assert guessed.status == 409
    assert connected(rig) and events(rig, "machine/local").count("join_refused") == 2

    # The machine itself may: it gets a new token, and what used the old one is cut.
    old = token_of(rig)
    again = post(rig, "/agent/v1/join", {"machine": "local", "current_token": old}, join)
    assert again.status == 201 and again.json["epoch"] == 1, again.body
    wait_until(lambda: not connected(rig), 1, "the link of the older token is cut")
    assert RawWebSocket(rig.port, "/agent/v1/link", old).status == 401
    assert post(rig, "/agent/v1/join", {"machine": "local", "current_token": old}, join).status == 409

    # And a person may free the name.
    assert RawWebSocket(rig.port, "/agent/v1/link", again.json["token"]).status == 101
    assert rig.call("DELETE", f"/api/v1/tokens/{hash_of_agents_token(rig)}").status == 204
    assert RawWebSocket(rig.port, "/agent/v1/link", again.json["token"]).status == 401
    assert post(rig, "/agent/v1/join", {"machine": "local"}, join).status == 201
    assert events(rig, "machine/local").count("joined") == 3


def test_the_command_line_joins_again_with_the_token_that_the_machine_has(rig):
    def join(*more):
        return subprocess.run([BIN / "perfrig-agent", "join", rig.url, "--config", rig.agent_folder("local") / "agent.yaml", *more],
                              capture_output=True, text=True, timeout=60)
    old, token = token_of(rig), rig.make_token("join")
    file = rig.folder / "join-token"
    file.write_text(token + "\n")
    done = join("--join-token-file", file)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert token_of(rig) != old
    done = join("--token", token)
    assert done.returncode == 0 and "--join-token-file" in done.stderr
    # With a new state directory it goes on counting where the controller saw it end.
    rig.agents["local"].stop()
    state = rig.agent_folder("local") / "state"
    shutil.rmtree(state)
    state.mkdir()
    if AM_ROOT:
        shutil.chown(state, AGENT_USER)
    refused = join("--join-token-file", file)
    assert refused.returncode == 3 and "machines forget local" in refused.stderr, refused.stderr
    assert rig.call("DELETE", f"/api/v1/tokens/{hash_of_agents_token(rig)}").status == 204
    assert join("--join-token-file", file).returncode == 0
    rig.start_agent()
    assert rig.get("/api/v1/machines/local")["agent_epoch"] == 2


def test_a_token_on_the_command_line_is_not_in_the_process_list(controller_rig):
    controller_rig.enrol()
    token = token_of(controller_rig)
    for form in (("--token", token), (f"--token={token}",)):
        agent = Process("agent", [BIN / "perfrig-agent", "run", "--config", controller_rig.agent_folder("local") / "agent.yaml", *form],
                        controller_rig.folder / "agent.log")
        controller_rig.agents["local"] = agent
        controller_rig.wait_connected()
        shown = [line for pid, line in controller_rig.processes_left() if "perfrig-agent" in line]
        assert shown and not [line for line in shown if token in line], shown
        agent.stop()


# --- two agents with one state directory --------------------------------------------------------------------------
def test_a_copy_of_a_state_directory_is_refused_and_the_first_goes_on(rig):
    rig.agents["local"].stop()
    first, copy = rig.agent_folder("local"), rig.agent_folder("copy")
    subprocess.run(["cp", "-a", first, copy], check=True)
    config = (copy / "agent.yaml").read_text().replace(str(first), str(copy))
    config = "\n".join("metrics_listen: 127.0.0.1:0" if line.startswith("metrics_listen") else line for line in config.splitlines())
    (copy / "agent.yaml").write_text(config + "\n")
    rig.start_agent()
    second = rig.start_agent("copy", wait=False)
    wait_until(lambda: "state directory" in second.log_text(), 20, "the copy is refused")
    assert "start 2 was another agent's" in second.log_text()
    assert connected(rig)
    time.sleep(1)
    assert "another session took over" not in rig.agents["local"].log_text()
    assert rig.sql("select count(*) from agent_start where epoch = 2") == [(1,)]


# --- hellos that can't be taken -----------------------------------------------------------------------------------
def hello(**changes):
    document = {"type": "hello", "version_min": 1, "version_max": 1, "machine": "local", "agent_version": "0", "boot_id": "b",
                "epoch": 1, "start_id": "0" * 32, "open_block": 0, "open_run": 0, "highest_token": 0, "open_changes": 0,
                "profile": {}, "labels": {}, "environment": {}, "metrics_url": "", "spool": []}
    return json.dumps({**document, **changes})


@pytest.mark.parametrize("text, reason", [
    (hello(version_min=9, version_max=9), "versions 9 to 9"),
    (hello(machine="other"), "other"),
    (hello(profile={"roles": {"app": {}}}), "roles.app"),
    (hello(profile={"roles": {"a\0b": "0"}}), "NUL"),
    (hello(profile={"rolls": "x" * 100000}), "65536"),
    (hello(labels={"cpu": ["a"]}), "label 'cpu'"),
    (hello(environment={"facts": 7, "raw": {}, "fingerprint": "f"}), "facts"),
    (hello(start_id="7"), "start_id"),
    ("{}", "type"),
    ("no json", "message"),
])
def test_a_hello_that_can_not_be_taken_ends_the_link_with_its_reason(controller_rig, text, reason):
    controller_rig.enrol()
    link = RawWebSocket(controller_rig.port, "/agent/v1/link", token_of(controller_rig))
    link.send(text)
    messages, code, closed_why = link.until_closed()
    assert code == 1008 and closed_why
    assert [m["type"] for m in messages] == ["refusal"] and messages[0]["fatal"] and messages[0]["lasting"]
    assert reason in messages[0]["reason"], messages
    assert reason in controller_rig.controller.log_text()
    # Nothing of it is kept.
    machine = controller_rig.get("/api/v1/machines/local")
    assert machine["profile"] == {} and machine["agent_epoch"] == 0 and not machine["connected"]


def test_what_is_no_message_ends_a_link_that_stood(controller_rig):
    controller_rig.enrol()
    link = RawWebSocket(controller_rig.port, "/agent/v1/link", token_of(controller_rig))
    link.send(hello())
    link.send('{"type":"explode"}')
    messages, code, _ = link.until_closed()
    assert code == 1008 and [m["type"] for m in messages] == ["welcome", "refusal"] and "explode" in messages[1]["reason"]


def test_a_join_that_waits_while_its_machine_is_forgotten_gets_no_token_of_it(controller_rig):
    rig = controller_rig
    rig.enrol()
    assert rig.call("DELETE", f"/api/v1/tokens/{hash_of_agents_token(rig)}").status == 204  # its name is free for a join
    other = rig.postgres.connect(rig.database)
    other.autocommit = False
    try:
        cursor = other.cursor()
        cursor.execute("select from machine where name = 'local' for update")
        join_token, answers = rig.make_token("join"), []
        joining = threading.Thread(target=lambda: answers.append(post(rig, "/agent/v1/join", {"machine": "local"}, join_token)))
        joining.start()
        wait_until(lambda: rig.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")[0][0] > 0, 10,
                   "the join waits for the machine")
        cursor.execute("update machine set forgotten_at = now() where name = 'local'")
        other.commit()
        joining.join(20)
    finally:
        other.close()
    assert answers and answers[0].status == 409 and b"forgotten" in answers[0].body, answers
    assert rig.sql("select count(*) from token where kind = 'agent' and revoked_at is null")[0][0] == 0


# --- HTTP ---------------------------------------------------------------------------------------------------------
def test_head_is_served_wherever_get_is(controller_rig):
    controller_rig.enrol()
    for path, methods in controller_rig.get("/api/v1/openapi.json")["paths"].items():
        if "get" not in methods or path.startswith("/agent") or path.endswith("/events"):
            continue
        target = path.replace("{machine}", "local").replace("{", "").replace("}", "")
        got, head = controller_rig.call("GET", target), controller_rig.call("HEAD", target)
        assert head.status == got.status and head.body == b"", target
        assert head.headers.get("ETag") == got.headers.get("ETag"), target
        if path != "/metrics":
            assert head.headers["Content-Length"] == str(len(got.body)), target
        allowed = controller_rig.call("OPTIONS", target)
        assert allowed.status == 204 and {"GET", "HEAD", "OPTIONS"} <= set(allowed.headers["Allow"].split(", ")), target
        wrong = controller_rig.call("PATCH", target)
        assert wrong.status == 405 and "HEAD" in wrong.headers["Allow"]


def test_a_nul_in_a_text_is_refused_at_the_door(controller_rig):
    controller_rig.enrol()
    nul = "a\0b"
    for target, document in (("/api/v1/machines/local/hold", {"reason": nul}), ("/api/v1/tokens", {"kind": "user", "label": nul}),
                             ("/api/v1/tokens", {nul: 1}), ("/api/v1/submissions", {"definition": nul}),
                             ("/api/v1/validate", {"definition": "perfrig: 1", "overrides": [nul]})):
        answer = post(controller_rig, target, document)
        assert answer.status == 422 and b"NUL" in answer.body, (target, answer.body)
    assert post(controller_rig, "/agent/v1/join", {"machine": nul}, controller_rig.make_token("join")).status == 422
    assert controller_rig.call("POST", "/api/v1/submissions", b"perfrig: 1\0").status == 422
    assert controller_rig.call("GET", "/api/v1/submissions?experiment=a%00b").status == 400
    assert post(controller_rig, "/api/v1/machines/local/hold", {"reason": "backslash u: \\u0000"}).status in (200, 409)
    assert " 500" not in controller_rig.controller.log_text()
