"""perfrig up and down, in a folder whose name wants care."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import experiments
from rig import AGENT_USER, AM_ROOT, BIN, WORKLOAD_USER, free_port

USERS = ["--user", AGENT_USER, "--workload-user", WORKLOAD_USER] if AM_ROOT else []


def start(folder, listen, *words):
    return subprocess.Popen([BIN / "perfrig", "--dir", folder, "up", "--listen", listen, "--metrics-listen",
                             f"127.0.0.1:{free_port()}", *USERS, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def ended(process, code):
    text, _ = process.communicate(timeout=120)
    assert process.returncode == code, text
    return text


def call(folder, *words):
    return subprocess.run([BIN / "perfrig", "--dir", folder, *words], capture_output=True, text=True, timeout=120)


def test_up_can_be_called_twice_at_once_and_moves_only_when_it_is_down():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="perfrig up's $(x) ", dir="/tmp"))
    os.chmod(folder, 0o755)
    first, second = (f"127.0.0.1:{free_port()}" for _ in range(2))
    try:
        both = [start(folder, first), start(folder, first)]
        assert all("perfrig is up" in ended(process, 0) for process in both)
        assert "perfrig down" in ended(start(folder, second), 2)
        assert call(folder, "machines", "list").returncode == 0  # still at the first address
        (folder / "long.yaml").write_text(experiments.command("sleep 60"))
        assert call(folder, "submit", folder / "long.yaml").returncode == 0
        down = call(folder, "down")
        assert down.returncode == 0 and "submission 1 is unfinished; it goes on at the next up" in down.stdout, down
        ended(start(folder, second), 0)  # with the agent, which up waits for
        assert second in (folder / "agent.yaml").read_text()
    finally:
        down = call(folder, "down", "--forget")
        shutil.rmtree(folder, ignore_errors=True)
    assert down.returncode == 0, down.stderr
