"""Kills at random moments of a block: the long version, for tests/nightly. The seed is printed, so that a run can be had
again (PERFRIG_SEED)."""
import os
import random
import time

import experiments
import pytest
from rig import RUN_END_STATES, wait_until
from test_kills import numbers, stored, truth_file


@pytest.mark.soak
@pytest.mark.parametrize("round_", range(12))
def test_whoever_dies_whenever_the_block_ends_with_every_sample_once(rig, round_):
    seed = int(os.environ.get("PERFRIG_SEED", time.time_ns() % 1_000_000)) + round_
    print("PERFRIG_SEED", seed)
    dice = random.Random(seed)
    truth = truth_file(rig)
    submission = rig.submit(experiments.generator(truth, measure="4s", replicates=2))["id"]
    ended = lambda: rig.get(f"/api/v1/submissions/{submission}")["state"] in ("completed", "failed")
    agents_killed = 0
    for _ in range(3):
        time.sleep(dice.uniform(0.2, 4))
        victim = dice.choice(["controller", "controller", "agent"] if agents_killed == 0 else ["controller"])
        if victim == "controller":
            rig.controller.kill()
            time.sleep(dice.uniform(0, 2))
            rig.start_controller()
        else:
            agents_killed += 1
            rig.agents["local"].kill()
            wait_until(lambda: not rig.workload_left(), 15, "everything that the agent had started is gone")
            rig.start_agent()
        if ended():
            break
    rig.wait_ended(submission, within=180)
    runs = rig.runs(submission)
    assert all(r["state"] in RUN_END_STATES for r in runs)
    assert sum(r["state"] == "completed" for r in runs) == 2, rig.report(submission)
    assert sum(r["state"] == "interrupted" for r in runs) <= agents_killed
    # Completed runs hold 1..n, each number once; the truth file holds all attempts one behind the other.
    written = numbers(truth)
    for run in runs:
        got = stored(rig, run["id"]) if any(s["name"] == "counted" for s in rig.get(f"/api/v1/runs/{run['id']}/series")["items"]) else []
        assert got == list(range(1, len(got) + 1)), (run, got)
    whole = [len(stored(rig, r["id"])) for r in runs if r["state"] == "completed"]
    assert sum(whole) <= len(written) and all(n in written for n in whole)
