"""Fixtures of the tests that drive whole programs."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))

from postgres import Postgres  # noqa: E402
from rig import Rig  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: the long version of a test, for tests/nightly")


def pytest_collection_modifyitems(config, items):
    """The long versions run only where they are asked for by `-m soak`."""
    if "soak" not in (config.getoption("-m") or ""):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="long: runs in tests/nightly"))


@pytest.fixture(scope="session")
def postgres():
    cluster = Postgres()
    yield cluster
    cluster.close()


@pytest.fixture
def bare_rig(postgres):
    """A rig with nothing started."""
    made = Rig(postgres)
    yield made
    made.close()


@pytest.fixture
def controller_rig(bare_rig):
    bare_rig.start_controller()
    return bare_rig


@pytest.fixture
def rig(controller_rig):
    """A controller and one agent named `local`: app on CPU 0, everything else on CPU 1."""
    controller_rig.start_agent()
    return controller_rig


@pytest.fixture
def own_postgres():
    """A cluster for tests that stop it."""
    cluster = Postgres()
    yield cluster
    cluster.close()
