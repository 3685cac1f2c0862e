"""A real Prometheus finds the agents through http_sd and scrapes them; promtool accepts what is served."""
import json
import shutil
import subprocess
import urllib.parse
import urllib.request

import experiments
import pytest
from rig import Process, free_port, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")


def scrape(url, token):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read()


def promtool(text):
    return subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60)


def test_promtool_accepts_controller_and_agent_while_a_run_is_measured(rig):
    token = rig.make_token("scrape")
    rig.agents["local"].stop()
    rig.start_agent()  # tokens for scraping reach it at welcome
    submission = rig.submit(experiments.web(connections=(2,), measure="8s"))["id"]
    rig.wait_run_state(rig.runs(submission)[0]["id"], "measuring")
    agent = rig.get("/api/v1/machines/local")["metrics_url"]

    def with_threads():
        text = scrape(agent, token)
        return text if b"thread" in text and b"nginx" in text else None
    agent_text = wait_until(with_threads, 20, "the agent shows thread groups", every=0.3)
    for text in (agent_text, scrape(rig.url + "/metrics", token)):
        checked = promtool(text)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    for word in (b"cpu", b"spool", b"run"):
        assert word in agent_text
    rig.wait_ended(submission)


def test_the_agents_metrics_need_a_token(rig):
    agent = rig.get("/api/v1/machines/local")["metrics_url"]
    for token in ("wrong", rig.token):
        with pytest.raises(urllib.error.HTTPError) as refused:
            scrape(agent, token)
        assert refused.value.code == 401


def test_a_real_prometheus_finds_and_scrapes_the_agent(rig):
    token = rig.make_token("scrape")
    rig.agents["local"].stop()
    rig.start_agent()
    (rig.folder / "scrape").write_text(token)
    port = free_port()
    (rig.folder / "prometheus.yml").write_text(f"""\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: perfrig-agents
    authorization: {{credentials_file: {rig.folder}/scrape}}
    http_sd_configs:
      - url: {rig.url}/api/v1/prometheus/targets
        refresh_interval: 1s
        authorization: {{type: Bearer, credentials_file: {rig.folder}/scrape}}
  - job_name: perfrig-controller
    authorization: {{credentials_file: {rig.folder}/scrape}}
    static_configs: [{{targets: ["127.0.0.1:{rig.port}"]}}]
""")
    prometheus = Process("prometheus", ["prometheus", f"--config.file={rig.folder}/prometheus.yml", f"--storage.tsdb.path={rig.folder}/tsdb",
                                        f"--web.listen-address=127.0.0.1:{port}"], rig.folder / "prometheus.log")

    def up():
        query = urllib.parse.urlencode({"query": "up == 1"})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}", timeout=5) as response:
                found = json.load(response)["data"]["result"]
        except OSError:
            return None
        jobs = {r["metric"]["job"]: r["metric"] for r in found}
        return jobs if {"perfrig-agents", "perfrig-controller"} <= set(jobs) else None
    try:
        jobs = wait_until(up, 60, "Prometheus has scraped both", every=0.5)
        assert jobs["perfrig-agents"].get("machine") == "local"
    finally:
        prometheus.stop()


def test_the_shipped_configuration_is_accepted():
    from rig import ROOT
    checked = subprocess.run(["promtool", "check", "config", "--syntax-only", ROOT / "deploy/prometheus/prometheus.yml"], capture_output=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
