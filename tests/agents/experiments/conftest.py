"""A tiny panel, known while a test lasts, and the folder of one that has been run."""

import pytest

from tests.support.tiny_panel import TINY, install


@pytest.fixture
def tiny(monkeypatch):
    install(monkeypatch)


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """The folder of a panel that has been run."""
    from agents.experiments.panel_jobs import jobs_of
    from agents.experiments.run import run_jobs

    out = tmp_path_factory.mktemp("panel")
    names = ["random", "optimal", "ppo", "bc", "bc-ppo"]
    _, failures = run_jobs(jobs_of(TINY, names, TINY.environments, [0, 1], out), 0)
    assert not failures
    return out
