"""What several tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

from dialgym import hub, registry, trust
from tests.support.pretend_hub import PretendHub

os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as shells start what runs behind them
    signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("PYDIAL", "MULTIWOZ", "DAILYDIALOG"):  # where a test wants such data it says so
    os.environ.pop(f"DIALGYM_{name}", None)

DATA = Path(os.environ.get("DIALGYM_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Ids that a test registers, and names that it says, are gone after it: others look at them."""
    before, said = set(registry._added), {*trust._said}
    yield
    trust._said.intersection_update(said)
    for env_id in registry._added.keys() - before:
        del registry._added[env_id]
        gym.registry.pop(env_id, None)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data, which is no part of the package; without it the test is skipped."""
    if not DATA.is_dir():
        pytest.skip(f"no real data at {DATA}; set DIALGYM_TEST_DATA to its folder")
    return DATA


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tables computed by the tests are kept apart from the user's, and shared by the workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    os.environ["DIALGYM_CACHE"] = str(shared / "dialgym-cache")


@pytest.fixture
def pretend_hub(tmp_path_factory, monkeypatch):
    """The hub of this test, with nothing fetched yet."""
    made = PretendHub(tmp_path_factory.mktemp("hub"))
    monkeypatch.setattr("huggingface_hub.snapshot_download", made.snapshot_download)
    monkeypatch.setattr(hub, "_folders", {})
    monkeypatch.setattr(hub, "_commits", {})
    for name in hub.OFFLINE:
        monkeypatch.delenv(name, raising=False)
    return made
