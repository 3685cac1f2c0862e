"""What is shipped: the agent as one file in an empty root, and the laptop mode from up to down."""
import json
import os
import pathlib
import shutil
import subprocess

import experiments
import pytest
from rig import AM_ROOT, BIN, ROOT, Process, free_port, wait_until

needs_root = pytest.mark.skipif(not AM_ROOT, reason="only root can mount and chroot")


def test_the_agent_is_one_static_file():
    told = subprocess.run(["ldd", BIN / "perfrig-agent"], capture_output=True, text=True)
    assert "not a dynamic executable" in told.stdout + told.stderr or "statically linked" in told.stdout


@needs_root
def test_the_agent_registers_from_a_chroot_that_holds_nothing_else(controller_rig):
    rig = controller_rig
    root = rig.folder / "root"
    mounts = []
    try:
        for folder in ("proc", "sys", "dev", "etc", "state"):
            (root / folder).mkdir(parents=True)
        shutil.copy(BIN / "perfrig-agent", root / "perfrig-agent")
        (root / "etc/passwd").write_text("root:x:0:0::/:\nagent:x:901:901::/:\nwork:x:902:902::/:\n")
        (root / "etc/group").write_text("root:x:0:\nagent:x:901:\nwork:x:902:\n")
        os.chown(root / "state", 901, 901)
        for name in ("proc", "sys", "dev"):
            subprocess.run(["mount", "--rbind", f"/{name}", root / name], check=True)
            subprocess.run(["mount", "--make-rslave", root / name], check=True)
            mounts.append(root / name)
        (root / "agent.yaml").write_text(f"controller: {rig.url}\nname: chrooted\nstate_dir: /state\nuser: agent\nworkload_user: work\n"
                                         f"metrics_listen: 127.0.0.1:{free_port()}\nprofile:\n  roles: {{app: \"0\", load: \"1\"}}\n")
        joined = subprocess.run(["chroot", root, "/perfrig-agent", "join", rig.url, "--config", "/agent.yaml"], capture_output=True, text=True,
                                env={**os.environ, "PERFRIG_JOIN_TOKEN": rig.make_token("join")}, timeout=60)
        assert joined.returncode == 0, joined.stdout + joined.stderr
        rig.agents["chrooted"] = Process("agent", ["chroot", root, "/perfrig-agent", "run", "--config", "/agent.yaml"], rig.folder / "agent.log")
        rig.wait_connected("chrooted")
        assert rig.get("/api/v1/machines/chrooted")["state"] == "idle"
        rig.agents.pop("chrooted").stop()
    finally:
        for mount in mounts:
            subprocess.run(["umount", "-l", mount], check=False)


@pytest.fixture
def laptop(tmp_path_factory):
    folder = pathlib.Path("/tmp") / f"perfrig-up.{os.getpid()}"
    listen, metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    users = ["--user", "daemon", "--workload-user", "nobody"] if AM_ROOT else []

    def perfrig(*arguments, timeout=300):
        return subprocess.run([perfrig.programs / "perfrig", "--dir", folder, *arguments], capture_output=True, text=True, timeout=timeout)
    perfrig.folder = folder
    perfrig.programs = BIN
    perfrig.up = lambda: perfrig("up", "--listen", listen, "--metrics-listen", metrics, *users)
    yield perfrig
    perfrig("down", "--forget")


def processes_of(folder):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str(folder) in (entry / "cmdline").read_bytes().decode(errors="replace") and (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
                    found.append(entry.name)
            except (OSError, IndexError):
                continue
    return found


def test_up_run_down_leaves_nothing(laptop):
    done = laptop.up()
    assert done.returncode == 0, done.stdout + done.stderr
    assert laptop.up().returncode == 0  # again does no harm
    for token in ("user", "scrape"):
        assert (laptop.folder / "tokens" / token).stat().st_mode & 0o777 == 0o600
    shipped = laptop("run", ROOT / "deploy/experiments/web-scaling.yaml", "--set", "phases.warm_up=1s", "--set", "phases.pause=200ms",
                     "--set", "phases.measure=2s", "--set", "replicates=1")
    assert shipped.returncode == 0, shipped.stdout + shipped.stderr
    for column in ("requests", "latency", "busy", "switches", "connections"):
        assert column in shipped.stdout, shipped.stdout
    assert len([l for l in shipped.stdout.splitlines() if l.split() and l.split()[0] in ("1", "2", "5", "10", "50", "100")]) == 6
    assert laptop("down").returncode == 0
    assert processes_of(laptop.folder) == []
    assert not [p for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuset") for p in pathlib.Path(base).glob("perfrig-*/run-*")]
    assert laptop("down").returncode == 0  # again does no harm


def test_results_survive_down_and_up(laptop):
    assert laptop.up().returncode == 0
    (laptop.folder / "e.yaml").write_text(experiments.command("echo value 42"))
    first = laptop("run", laptop.folder / "e.yaml")
    assert first.returncode == 0 and "42" in first.stdout, first.stdout + first.stderr
    assert laptop("down").returncode == 0
    assert laptop.up().returncode == 0
    assert "42" in laptop("results").stdout


@needs_root
def test_a_build_that_only_root_can_look_into_comes_up_all_the_same(laptop, tmp_path):
    os.chmod(tmp_path, 0o700)
    for program in ("perfrig", "perfrig-controller", "perfrig-agent"):
        shutil.copy(BIN / program, tmp_path / program)
    laptop.programs = tmp_path
    done = laptop.up()
    assert done.returncode == 0, done.stdout + done.stderr
    (laptop.folder / "e.yaml").write_text(experiments.command("echo value 42"))
    first = laptop("run", laptop.folder / "e.yaml")
    assert first.returncode == 0 and "42" in first.stdout, first.stdout + first.stderr
    assert laptop("down").returncode == 0
    assert processes_of(laptop.folder) == []


@pytest.mark.parametrize("name", ["context-switch-cost", "sched-yield", "database-round-trip"])
def test_the_other_shipped_experiments_run_here(laptop, name):
    assert laptop.up().returncode == 0
    quick = {"context-switch-cost": ["--set", "tools.pipe.loops=2000"], "sched-yield": ["--set", "phases.measure=1s"],
             "database-round-trip": ["--set", "phases.warm_up=1s", "--set", "phases.measure=2s"]}[name]
    done = laptop("run", ROOT / f"deploy/experiments/{name}.yaml", "--set", "replicates=1", "--format", "json", *quick)
    table = json.loads(done.stdout[done.stdout.index("{"):])
    states = {r["state"] for row in table["rows"] for r in row["replicates"]}
    assert states <= {"completed", "refused"} and "completed" in states, done.stdout[-3000:] + done.stderr
    if name == "context-switch-cost":
        for row in table["rows"]:
            for r in row["replicates"]:
                if r["state"] == "refused":
                    assert r["reason"]
