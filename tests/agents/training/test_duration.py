"""The warning of how long learning is going to take."""

import itertools
import warnings

import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.duration import DurationWarning
from agents.experiments.training_job import train_quietly
from tests.support.commands import succeed
from tests.support.players import SMALL

NETWORK = {"n_layer": 1, "n_embd": 8, "n_head": 1}


@pytest.fixture
def seconds(monkeypatch):
    """The time of the clock, in a list, which tests change."""
    now = [0.0]
    monkeypatch.setattr(DurationWarning, "clock", staticmethod(lambda: now[0]))
    return now


@pytest.fixture
def slow_clock(monkeypatch):
    """A clock by which 1000 seconds pass between any two looks."""
    ticks = itertools.count(0.0, 1000.0)
    monkeypatch.setattr(DurationWarning, "clock", staticmethod(lambda: next(ticks)))


def cloner(batch_size=8):
    games = dialgym.collect(SMALL, "random", 16)
    env = dialgym.sb3_vec_env(SMALL, 1)
    return agents.BC("GPTPolicy", env, games, batch_size=batch_size, policy_kwargs=NETWORK)


def steps(model, seconds, costs):
    """A callback by which gradient steps take so many seconds each; learning ends with them."""
    costs = iter(costs)

    def step(local, _):
        seconds[0] += next(costs, 0.0)
        return model.num_timesteps < 12

    return step


def test_gradient_steps_that_take_long_are_told_once_and_in_time(seconds):
    model = cloner()
    costs = [60.0, *[2.0] * 11]  # the first of which does not count
    with pytest.warns(agents.LongTrainingWarning) as caught:
        model.learn(3000, steps(model, seconds, costs))
    assert [str(one.message) for one in caught] == [
        "BC: 2,997 gradient steps of about 2.0 s are left, about 1 h 39 min. Less time: a smaller "
        "batch_size (it is 8), shorter dialogues or fewer steps."
    ]


def test_a_run_that_gets_slow_is_told_of_later(seconds):
    model = cloner()
    with pytest.warns(agents.LongTrainingWarning, match="2,993 gradient steps of about 4.0 s"):
        model.learn(3000, steps(model, seconds, [0.5] * 4 + [4.0] * 8))


@pytest.mark.parametrize(("total", "cost"), [(800, 2.0), (10**6, 0.001)])
def test_short_runs_and_times_too_short_to_tell_are_not(total, cost, seconds):
    model = cloner()
    with warnings.catch_warnings(action="error", category=agents.LongTrainingWarning):
        model.learn(total, steps(model, seconds, [cost] * 12))


PPO = {"n_steps": 4, "batch_size": 8, "n_epochs": 1, "policy_kwargs": NETWORK}
STOCK = ("stock-ppo", SMALL, {"total_timesteps": 160, "n_envs": 2, "hyperparameters": PPO})


@pytest.mark.parametrize(
    ("algorithm", "env_id", "more"),
    [
        ("ppo", SMALL, STOCK[2]),
        STOCK,
        ("ppo", SMALL, {"dialogues": 12, "n_envs": 2, "hyperparameters": PPO}),
    ],
)
def test_rollouts_are_measured_in_own_and_stock_algorithms(
    algorithm, env_id, more, slow_clock, tmp_path
):
    fields = {"device": "cpu", "progress_bar": False, "log_dir": tmp_path / "run", **more}
    with pytest.warns(
        agents.LongTrainingWarning, match=r"rollouts of about .* are left, about .*network"
    ):
        agents.train(env_id, algorithm, **fields)


def test_a_command_says_it_in_one_line_and_a_grid_does_not(slow_clock, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "formatwarning", None)
    dialgym.collect(SMALL, "random", 16, path="games")
    with pytest.warns(agents.LongTrainingWarning) as caught:
        succeed("train", "bc", SMALL, "-d", "games", "--timesteps", "30", "-p", "batch_size=4",
                "-p", f"policy_kwargs={NETWORK}", "--final-episodes", "0")  # fmt: skip
    [said] = [one for one in caught if one.category is agents.LongTrainingWarning]
    text = warnings.formatwarning(said.message, said.category, said.filename, said.lineno)
    assert text.startswith("warning: BC: 27 gradient steps of about 5 min 33 s are left, about 2 h")
    assert text.count("\n") == 1
    with warnings.catch_warnings(action="error", category=agents.LongTrainingWarning):
        fields = {"data": "games", "total_timesteps": 8, "hyperparameters": {"batch_size": 4}}
        train_quietly("bc", SMALL, tmp_path / "quiet", 0, **fields)
