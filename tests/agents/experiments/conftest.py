"""A tiny panel, known while a test lasts, and the folder of one that has been run."""

from contextlib import contextmanager

import pytest

from tests.support.tiny_panel import QUICK, install


@pytest.fixture
def tiny(monkeypatch):
    install(monkeypatch, QUICK)


@pytest.fixture
def interrupt_at(monkeypatch):
    """A context in which a callback of training raises KeyboardInterrupt at its first timesteps."""

    @contextmanager
    def interrupted(callback, timesteps):
        step = callback._on_step

        def stop(self):
            if self.num_timesteps > timesteps:
                raise KeyboardInterrupt
            return step(self)

        with monkeypatch.context() as patch:
            patch.setattr(callback, "_on_step", stop)
            with pytest.raises(KeyboardInterrupt):
                yield

    return interrupted


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """The folder of a panel that has been run."""
    from agents.experiments.panel_jobs import jobs_of
    from agents.experiments.run import run_jobs

    out = tmp_path_factory.mktemp("panel")
    names = ["random", "optimal", "ppo", "bc", "bc-ppo"]
    _, failures = run_jobs(jobs_of(QUICK, names, QUICK.environments, [0, 1], out), 0)
    assert not failures
    return out
