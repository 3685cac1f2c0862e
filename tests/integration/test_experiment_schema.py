"""The experiment schema as an editor uses it, on the shipped experiments and on what the tests run."""
import json

import experiments
import jsonschema
import pytest
import yaml
from rig import ROOT

SCHEMA = json.loads((ROOT / "schemas/experiment.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def errors(text):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in VALIDATOR.iter_errors(yaml.safe_load(text))]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted((ROOT / "deploy/experiments").glob("*.yaml")), ids=lambda p: p.name)
def test_a_shipped_experiment_is_valid(path):
    assert errors(path.read_text()) == []


def test_what_the_tests_run_is_valid():
    assert errors(experiments.web()) == []
    assert errors(experiments.generator("/tmp/truth")) == []


@pytest.mark.parametrize("what, by", [
    ("replicates: 1", "replicats: 1"), ("threads: 1", "thread: 1"), ("measure: 2s", "measure: 2"), ("role: app", "role: 5"),
    ("tool: wrk", "tool: wkr"), ("connections: [1, 2]", "connections: []"), ("perfrig: 1", "perfrig: 2"),
])
def test_a_mistake_is_seen(what, by):
    text = experiments.web()
    assert what in text
    assert errors(text.replace(what, by, 1)) != []
