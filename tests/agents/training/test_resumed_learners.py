"""Runs of every algorithm of the table, cut off: one that goes on equals one that was not cut."""

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.registry import ALGORITHMS
from tests.support.resuming import (
    assert_same_model,
    assert_same_run,
    weights_of,
    whole_and_resumed,
)

SLOTS, WORDS = "dialgym/SlotFilling-act-v0", "dialgym/Wordle-20-v0"
WISHES = "tests.support.toy_acts:Wishes-act"  # several acts at once
NET = {"net_arch": [8]}
GPT = {"n_layer": 1, "n_head": 1, "n_embd": 8}
# Schedules see how long a run is to be: rates are constant, exploration is over before the cut.
RATE = {"learning_rate": 1e-3}
ROLLOUT = {**RATE, "n_steps": 12, "batch_size": 24, "policy_kwargs": NET}
REPLAY = {"learning_starts": 60, "batch_size": 16, "buffer_size": 150, "policy_kwargs": NET}
REPLAY |= {"exploration_fraction": 0.01, "target_update_interval": 80, **RATE}
CURIOUS = {"curiosity": {}, "uncertainty": "concrete"}
CONSTANT = {"exploration_initial_eps": 0.1, "exploration_final_eps": 0.1}
DIALOGUES = {"buffer_size": 150, "policy_kwargs": NET, **CONSTANT}
TOKENS = {**RATE, "n_steps": 18, "batch_size": 144, "n_epochs": 2, "policy_kwargs": GPT}
STORED = {**RATE, "batch_size": 8, "log_interval": 2, "policy_kwargs": GPT}
ACTS = {**RATE, "batch_size": 8, "log_interval": 2}


class Run(NamedTuple):
    """A training that is cut off soon after a checkpoint.

    Attributes:
        algorithm: in the table.
        env: its id.
        hyperparameters: small ones.
        steps: at which it is cut, and at which it ends.
        quick: True for one of each mechanism; the others are tried at night.
    """

    algorithm: str
    env: str
    hyperparameters: dict[str, Any]
    steps: tuple[int, int] = (150, 260)
    quick: bool = False


def off_policy(quick: bool = False, algorithm: str = "dqn", env: str = SLOTS, **more: Any) -> Run:
    kwargs = {**NET, **more.pop("policy_kwargs", {})}
    return Run(algorithm, env, {**REPLAY, **more, "policy_kwargs": kwargs}, quick=quick)


RUNS = {
    "stock-ppo": Run("stock-ppo", SLOTS, ROLLOUT),
    "maskable-ppo": Run("maskable-ppo", SLOTS, ROLLOUT, quick=True),
    "recurrent-ppo": Run(
        "recurrent-ppo", SLOTS, {**ROLLOUT, "policy_kwargs": {**NET, "lstm_hidden_size": 8}}
    ),
    "stock-a2c": Run("stock-a2c", SLOTS, {**RATE, "n_steps": 8, "policy_kwargs": NET}),
    "trpo": Run("trpo", SLOTS, ROLLOUT),
    "stock-dqn": off_policy(True, "stock-dqn"),
    "stock-dqn-words": off_policy(True, "stock-dqn", WORDS),
    "qrdqn": off_policy(algorithm="qrdqn", policy_kwargs={"n_quantiles": 5}),
    "dqn-n-step": off_policy(True, n_steps=3, priority_alpha=0.6, priority_beta=1.0),
    "dqn-bootstrap": off_policy(policy_kwargs={"uncertainty": "bootstrap"}),
    "dqn-curious": off_policy(n_steps=1, policy_kwargs=CURIOUS),
    "bbqn": off_policy(algorithm="bbqn"),
    "feudal-dqn": off_policy(True, "feudal-dqn"),
    "feudal-gain": off_policy(algorithm="feudal-gain"),
    "feudal-acer": Run("feudal-acer", SLOTS, {**DIALOGUES, "learning_starts": 40}),
    "a2c": Run("a2c", SLOTS, DIALOGUES),
    "enac": Run("enac", SLOTS, DIALOGUES, quick=True),
    "acer": Run("acer", SLOTS, DIALOGUES, quick=True),
    "tracer": Run("tracer", SLOTS, DIALOGUES),
    "gp-sarsa": Run("gp-sarsa", SLOTS, {}, quick=True),
    "committee": Run("committee", SLOTS, {}),
    "pg": Run("pg", WISHES, RATE, quick=True),
    "gdpl": Run("gdpl", WISHES, {**RATE, "n_steps": 12}, quick=True),
    "madpl": Run("madpl", WISHES, RATE, quick=True),
    "ppo": Run("ppo", WORDS, TOKENS, (200, 430)),
    "nlpo": Run(
        "nlpo",
        WORDS,
        {
            **TOKENS, "learning_rate": 0.003, "top_p": 0.8, "mask_every": 3,
            "kl": {"coef": 0.05, "target": 0.01, "horizon": 5000},
        },
        (280, 430),
        quick=True,
    ),
    "grpo": Run("grpo", WORDS, {**TOKENS, "n_steps": 48, "group_size": 2}, (300, 600)),
    **{
        name: Run(name, WORDS, STORED, (4, 8))
        for name, row in ALGORITHMS.items()
        if not row.plays and name != "mle"
    },
    "mle": Run("mle", WISHES, ACTS, (4, 8)),
    "cql-acts": Run("cql", SLOTS, ACTS, (4, 8), quick=True),
}  # fmt: skip


@pytest.fixture(scope="module")
def stored():
    """Dialogues of each environment that the runs learn from."""
    policies = {WORDS: "random-mixture", SLOTS: "handcrafted", WISHES: "ask-all"}
    return {id: dialgym.collect(id, name, 16, seed=0) for id, name in policies.items()}


def test_every_algorithm_of_the_table_has_a_run():
    assert {run.algorithm for run in RUNS.values()} == {*ALGORITHMS}


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, id=name, marks=[] if run.quick else pytest.mark.slow)
        for name, run in RUNS.items()
    ],
)
def test_a_run_that_goes_on_equals_one_that_was_not_cut(run, stored, tmp_path, monkeypatch):
    monkeypatch.setattr("agents.training.prepare.STOCK_INTERVAL", 100)
    row = ALGORITHMS[run.algorithm]
    more = {"data": stored[run.env]} if row.reads else {}
    if row.plays:
        more["n_envs"] = 4
    algorithm = run.env, run.algorithm, *run.steps
    whole, resumed = whole_and_resumed(
        tmp_path, *algorithm, hyperparameters=run.hyperparameters, **more
    )
    assert type(resumed) is type(whole) is row.load()
    assert weights_of(whole)
    assert_same_model(whole, resumed)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    for name in ("kl_coef", "rollouts", "_n_updates"):
        assert getattr(resumed, name, None) == getattr(whole, name, None)
    if hasattr(getattr(whole, "replay_buffer", None), "unseen"):
        for name in ("lengths", "unseen"):
            assert np.array_equal(*(getattr(m.replay_buffer, name) for m in (whole, resumed)))
    dataset = {"dataset": more["data"]} if row.reads else {}
    loaded = agents.load(tmp_path / "cut" / "model.zip", env=whole.get_env(), **dataset)
    assert type(loaded) is row.load()
    assert_same_model(whole, loaded)
    loaded.learn(8, reset_num_timesteps=False)
