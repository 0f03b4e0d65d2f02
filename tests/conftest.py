"""Fixtures of all tests, and their isolation.

A test sees an empty folder as its current one and none of the user's settings: what lies in the
checkout (`runs/`, `data/`), in caches or in environment variables changes no result.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import gymnasium as gym
import pytest
from hypothesis import HealthCheck, settings

from dialgym import registry, trust
from dialgym.io import hub
from tests.support.pretend_hub import PretendHub

pytest_plugins = ("tests.support.cpu_time",)

TEST_DATA = "DIALGYM_TEST_DATA"
DATA = Path(os.environ.get(TEST_DATA, Path(__file__).parents[2] / "shared" / "data")).absolute()
USER_SETTINGS = ("DIALGYM_", "HF_", "TRANSFORMERS_", "WANDB_", "ACCELERATE_", "MPLBACKEND")
USER_SETTINGS += ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_", "SSL_CERT_")
USER_SETTINGS += ("RANK", "LOCAL_", "WORLD_SIZE", "http_proxy", "HTTP_PROXY")
USER_SETTINGS += ("PYTHONDONTWRITEBYTECODE",)  # processes that tests start would compile all anew
USER_SETTINGS += ("PYTEST_ADDOPTS",)  # of this run, not of those that tests start
for name in [name for name in os.environ if name.startswith(USER_SETTINGS)]:
    del os.environ[name]
os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as shells start what runs behind them
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Under load a single example takes any time. The fast tests draw the same few examples each time.
WITHOUT_DEADLINES = settings(
    deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", WITHOUT_DEADLINES)
settings.register_profile("fast", WITHOUT_DEADLINES, derandomize=True, max_examples=40)
settings.load_profile("fast")
gc.set_threshold(100_000, 20, 20)  # Python looks through 700 new objects: a twelfth of the time


@pytest.fixture(scope="session", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fixtures of modules and sessions begin in a folder of their own; nothing is left there."""
    os.environ["HF_HOME"] = str(tmp_path_factory.mktemp("hugging-face"))
    os.chdir(tmp_path_factory.mktemp("elsewhere"))


def pytest_collection_finish() -> None:
    """Modules and tests are there to stay: the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()


_folders = count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder; pytest's own first looks through those of all tests before."""
    return tmp_path_factory.mktemp(f"test{next(_folders)}", numbered=False)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins in its own empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Remove ids and algorithms that a test registers, and names that it allows."""
    before, allowed = set(registry._added), {*trust._allowed}
    yield
    trust._allowed.intersection_update(allowed)
    for env_id in registry._added.keys() - before:
        del registry._added[env_id]
        gym.registry.pop(env_id, None)
    if algorithms := sys.modules.get("agents.registry"):
        algorithms._registered.clear()
        algorithms._classes.clear()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data, which is no part of the package; without it the test is skipped."""
    if not DATA.is_dir():
        pytest.skip(f"no real data at {DATA}; set {TEST_DATA} to its folder")
    return DATA


@pytest.fixture(scope="session")
def real_file(data: Path) -> Callable[..., Path]:
    """A file or folder of the real data by its path there; without it the test is skipped."""

    def find(*parts: str) -> Path:
        path = data.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"no real data at {path}")
        return path

    return find


@pytest.fixture(scope="session", autouse=True)
def cache(elsewhere: None, tmp_path_factory: pytest.TempPathFactory) -> None:
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
