"""The REST API as scripts and Jenkins meet it."""
import json

import experiments
from rig import ROOT

SHIPPED = (ROOT / "deploy/experiments/web-scaling.yaml").read_text()


def test_the_shipped_file_is_queued_and_the_same_key_gives_the_same_submission(controller_rig):
    first = controller_rig.call("POST", "/api/v1/submissions", SHIPPED, {"Idempotency-Key": "night-1"})
    assert first.status == 201, first.body
    assert first.headers["Location"] == f"/api/v1/submissions/{first.json['id']}"
    assert first.json["state"] == "queued" and first.json["run_count"] == 12
    again = controller_rig.call("POST", "/api/v1/submissions", SHIPPED, {"Idempotency-Key": "night-1"})
    assert again.status == 200 and again.json["id"] == first.json["id"]
    other = controller_rig.call("POST", "/api/v1/submissions", experiments.web(), {"Idempotency-Key": "night-1"})
    assert other.status == 422, other.body
    urgent = controller_rig.call("POST", "/api/v1/submissions?priority=5", SHIPPED, {"Idempotency-Key": "night-1"})
    assert urgent.status == 422, urgent.body  # not answered as if the priority had been taken
    assert len(controller_rig.get("/api/v1/submissions")["items"]) == 1


def test_keys_of_different_tokens_do_not_meet(controller_rig):
    other = controller_rig.make_token("user")
    mine = controller_rig.call("POST", "/api/v1/submissions", experiments.web(), {"Idempotency-Key": "k"})
    theirs = controller_rig.call("POST", "/api/v1/submissions", experiments.web(), {"Idempotency-Key": "k"}, token=other)
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json["id"] != theirs.json["id"]


def test_a_broken_file_gets_every_fault_with_its_place(controller_rig):
    text = experiments.web().replace("connections: ${connections}", "conections: ${connections}").replace(
        "measure: 2s", "measure: 2").replace("role: app", "rol: app")
    answer = controller_rig.call("POST", "/api/v1/submissions", text)
    assert answer.status == 422
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    faults = answer.json["faults"]
    lines = text.splitlines()
    for word in ("conections", "rol:", "measure: 2}"):
        line = next(i for i, l in enumerate(lines, 1) if word in l)
        column = lines[line - 1].index(word) + 1
        assert any(f["line"] == line and f["column"] >= column for f in faults), (word, faults)
    assert controller_rig.get("/api/v1/submissions")["items"] == []


def test_the_queue_survives_a_restart_of_the_controller(controller_rig):
    ids = [controller_rig.submit(experiments.web(name=f"test/web{i}"), query=f"?priority={i}")["id"] for i in range(5)]
    assert controller_rig.controller.stop() == 0
    controller_rig.start_controller()
    found = {s["id"]: s for s in controller_rig.get("/api/v1/submissions")["items"]}
    assert sorted(found) == sorted(ids)
    assert {s["state"] for s in found.values()} == {"queued"}
    assert [found[i]["priority"] for i in ids] == [0, 1, 2, 3, 4]


def test_a_cancelled_submission_never_starts(controller_rig):
    submission = controller_rig.submit(experiments.web())["id"]
    assert controller_rig.call("POST", f"/api/v1/submissions/{submission}/cancel").status == 200
    assert controller_rig.get(f"/api/v1/submissions/{submission}")["state"] == "cancelled"
    assert controller_rig.call("POST", f"/api/v1/submissions/{submission}/cancel").status == 200  # again does no harm
    controller_rig.start_agent()
    assert {r["state"] for r in controller_rig.runs(submission)} == {"cancelled"}


def operations(rig):
    for path, methods in rig.get("/api/v1/openapi.json")["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "put", "post", "delete", "head", "patch"):
                concrete = path
                for name in ("submission", "run", "artifact", "series"):
                    concrete = concrete.replace("{%s}" % name, "1")
                yield method.upper(), concrete.replace("{", "").replace("}", ""), operation


def test_without_a_token_every_route_but_healthz_answers_401(controller_rig):
    seen = 0
    for method, path, _ in operations(controller_rig):
        for token in (None, "wrong"):
            status = controller_rig.call(method, path, b"" if method in ("POST", "PUT") else None, token=token).status
            assert status == (200 if path == "/healthz" else 401), (method, path, token, status)
        seen += 1
    assert seen > 25


def test_with_an_agents_token_everything_outside_agent_v1_answers_403(rig):
    token = (rig.agent_folder("local") / "state" / "token").read_text().strip()
    for method, path, _ in operations(rig):
        if path != "/healthz" and not path.startswith("/agent/v1"):
            assert rig.call(method, path, b"" if method in ("POST", "PUT") else None, token=token).status == 403, (method, path)


def test_a_scrape_token_reads_metrics_and_targets_and_nothing_else(controller_rig):
    token = controller_rig.make_token("scrape")
    for method, path, operation in operations(controller_rig):
        allowed = path == "/healthz" or any("scrape" in kind for kind in operation.get("security", []))
        status = controller_rig.call(method, path, b"" if method in ("POST", "PUT") else None, token=token).status
        assert (status == 200) == allowed and status in (200, 403), (method, path, status)


def test_a_revoked_token_is_refused(controller_rig):
    made = controller_rig.call("POST", "/api/v1/tokens", json.dumps({"kind": "user"}), {"Content-Type": "application/json"}).json
    assert controller_rig.call("GET", "/api/v1/runs", token=made["token"]).status == 200
    assert controller_rig.call("DELETE", f"/api/v1/tokens/{made['hash']}").status in (200, 204)
    assert controller_rig.call("GET", "/api/v1/runs", token=made["token"]).status == 401


def test_only_hashes_of_tokens_are_in_the_database(controller_rig):
    token = controller_rig.make_token("join")
    for table, in controller_rig.sql("select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'"):
        for row, in controller_rig.sql(f'select t::text from "{table}" t'):
            assert token not in row and controller_rig.token not in row, table


def test_unknown_paths_and_methods_are_told_apart(controller_rig):
    assert controller_rig.call("GET", "/api/v1/nothing").status == 404
    wrong = controller_rig.call("DELETE", "/api/v1/submissions")
    assert wrong.status == 405 and "GET" in wrong.headers["Allow"] and "POST" in wrong.headers["Allow"]
    assert controller_rig.call("GET", "/api/v1/submissions/999999").status == 404
    assert controller_rig.call("GET", "/api/v1/submissions/1e9").status in (400, 404)


def test_a_body_of_ten_mebibytes_is_refused_and_the_controller_lives(controller_rig):
    answer = controller_rig.call("POST", "/api/v1/submissions", b"#" * (10 << 20))
    assert answer.status == 413
    assert controller_rig.call("GET", "/healthz", token=None).status == 200


def test_ten_thousand_cells_need_a_yes(controller_rig):
    text = """\
perfrig: 1
name: test/many
factors: {a: [%s], b: [%s]}
tools:
  t: {tool: command, role: load, command: "echo value ${a}.${b}", metrics: [{name: value, unit: count, pattern: "value (.*)"}]}
phases: {measure: 1s}
""" % (", ".join(map(str, range(100))), ", ".join(map(str, range(100))))
    refused = controller_rig.call("POST", "/api/v1/submissions", text)
    assert refused.status == 422 and b"10,000" in refused.body or b"10000" in refused.body
    assert controller_rig.get("/api/v1/submissions")["items"] == []
    taken = controller_rig.call("POST", "/api/v1/submissions?confirm=true", text)
    assert taken.status == 201 and taken.json["cell_count"] == 10000


def test_a_resource_that_has_not_changed_is_not_sent_again(controller_rig):
    submission = controller_rig.submit(experiments.web())["id"]
    first = controller_rig.call("GET", f"/api/v1/submissions/{submission}")
    again = controller_rig.call("GET", f"/api/v1/submissions/{submission}", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304 and again.body == b""


def test_lists_come_in_pages_that_miss_nothing(controller_rig):
    ids = [controller_rig.submit(experiments.web())["id"] for _ in range(7)]
    seen, after = [], None
    while True:
        page = controller_rig.get("/api/v1/submissions?limit=3" + (f"&after={after}" if after else ""))
        seen += [s["id"] for s in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == sorted(ids, reverse=True)


def test_graceful_stop_answers_what_is_under_way(controller_rig):
    assert controller_rig.controller.stop(within=15) == 0
