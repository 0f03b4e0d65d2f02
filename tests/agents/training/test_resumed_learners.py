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
    evaluations,
    weights_of,
    whole_and_resumed,
)

SLOTS, WORDS = "dialgym/SlotFilling-act-v0", "dialgym/Wordle-20-v0"
WISHES = "tests.support.toy_acts:Wishes-act"  # several acts at once
NET = {"net_arch": [8]}
GPT = {"n_layer": 1, "n_head": 1, "n_embd": 8}
ROLLOUT = {"n_steps": 12, "batch_size": 24, "policy_kwargs": NET}
REPLAY = {"learning_starts": 60, "batch_size": 16, "buffer_size": 150, "policy_kwargs": NET}
REPLAY["target_update_interval"] = 80
DIALOGUES = {"buffer_size": 150, "policy_kwargs": NET}
TOKENS = {"n_steps": 18, "batch_size": 144, "n_epochs": 2, "policy_kwargs": GPT}
CUT = {"n_steps": 20}  # rollouts end within utterances of six tokens
STORED = {"batch_size": 8, "log_interval": 2, "policy_kwargs": GPT}
ACTS = {"batch_size": 8, "log_interval": 2}
NORMALIZE = {"normalize": {"norm_obs": False, "norm_reward": True}}
STEERED = {"coef": 0.05, "target": 0.01, "horizon": 5000}
CURIOUS = {"curiosity": {}, "uncertainty": "concrete"}
SCORED = {"eval_episodes": 4, "samples": 2}


class Run(NamedTuple):
    """A training that is cut off after its first checkpoint.

    Attributes:
        algorithm: in the table.
        env: its id.
        hyperparameters: small ones.
        steps: at which it ends.
        quick: True for one of each mechanism; the others are tried at night.
        more: further arguments of `agents.train`.
    """

    algorithm: str
    env: str
    hyperparameters: dict[str, Any]
    steps: int = 260
    quick: bool = False
    more: dict[str, Any] = {}


def off_policy(quick: bool = False, algorithm: str = "dqn", env: str = SLOTS, **more: Any) -> Run:
    kwargs = {**NET, **more.pop("policy_kwargs", {})}
    return Run(algorithm, env, {**REPLAY, **more, "policy_kwargs": kwargs}, quick=quick)


LSTM = {"policy_kwargs": {**NET, "lstm_hidden_size": 8}}
RUNS = {
    "stock-ppo": Run("stock-ppo", SLOTS, ROLLOUT),
    "maskable-ppo": Run("maskable-ppo", SLOTS, ROLLOUT, quick=True),
    "recurrent-ppo": Run("recurrent-ppo", SLOTS, {**ROLLOUT, **LSTM}),
    "stock-a2c": Run("stock-a2c", SLOTS, {"n_steps": 8, "policy_kwargs": NET}),
    "trpo": Run("trpo", SLOTS, ROLLOUT),
    "stock-dqn": off_policy(algorithm="stock-dqn"),
    "stock-dqn-words": off_policy(True, "stock-dqn", WORDS),
    "qrdqn": off_policy(algorithm="qrdqn", policy_kwargs={"n_quantiles": 5}),
    "dqn-n-step": off_policy(True, n_steps=3, priority_alpha=0.6),
    "dqn-bootstrap": off_policy(policy_kwargs={"uncertainty": "bootstrap"}),
    "dqn-curious": off_policy(n_steps=1, policy_kwargs=CURIOUS),
    "bbqn": off_policy(algorithm="bbqn"),
    "feudal-dqn": off_policy(algorithm="feudal-dqn"),
    "feudal-gain": off_policy(algorithm="feudal-gain"),
    "feudal-acer": Run("feudal-acer", SLOTS, {**DIALOGUES, "learning_starts": 40}),
    "a2c": Run("a2c", SLOTS, DIALOGUES),
    "enac": Run("enac", SLOTS, DIALOGUES),
    "acer": Run("acer", SLOTS, DIALOGUES, quick=True),
    "tracer": Run("tracer", SLOTS, DIALOGUES),
    "gp-sarsa": Run("gp-sarsa", SLOTS, {}, quick=True),
    "committee": Run("committee", SLOTS, {}),
    "pg": Run("pg", WISHES, {}),
    **{
        name: Run(name, WISHES, {"group_size": 2, "kl": STEERED})
        for name in ("act-grpo", "act-expert-iteration")
    },
    "gdpl": Run("gdpl", WISHES, {"n_steps": 12}, quick=True),
    "madpl": Run("madpl", WISHES, {}),
    "ppo": Run(
        "ppo", WORDS, {**TOKENS, **NORMALIZE, **CUT}, 360, True, {**SCORED, "eval_freq": 150}
    ),
    "nlpo": Run("nlpo", WORDS, {**TOKENS, "top_p": 0.8, "mask_every": 3, "kl": STEERED}, 360),
    **{
        name: Run(name, WORDS, {**TOKENS, "n_steps": 48, "group_size": 2}, 500)
        for name in ("grpo", "expert-iteration")
    },
    "grpo-privileged": Run(
        "grpo",
        WORDS,
        {**TOKENS, "n_steps": 48, "group_size": 2, "credit": "privileged"},
        500,
        more={"env_kwargs": {"truths": True}},
    ),
    "refuel": Run("refuel", WORDS, {**TOKENS, "n_steps": 48}, 500),
    "archer": Run(
        "archer",
        WORDS,
        {**TOKENS, "n_steps": 48, "critic_steps": 2, "replay_batch": 3, "warmup": 1},
        500,
        True,
    ),
    **{
        name: Run(name, WORDS, STORED, 8)
        for name, row in ALGORITHMS.items()
        if not row.plays and name != "mle"
    },
    "ilql": Run("ilql", WORDS, STORED, 9, more={**SCORED, "eval_freq": 3}),
    "chai": Run("chai", WORDS, {**STORED, "clone_steps": 4}, 8, True),
    "mle": Run("mle", WISHES, ACTS, 8),
    "cql-acts": Run("cql", SLOTS, ACTS, 8, True),
}


@pytest.fixture(scope="module")
def stored():
    """Dialogues of each environment that the runs learn from."""
    policies = {WORDS: "random-mixture", SLOTS: "handcrafted", WISHES: "ask-all"}
    return {id: dialgym.collect(id, name, 16, seed=0) for id, name in policies.items()}


def test_every_algorithm_of_the_table_has_a_run():
    """A policy manager aside, which goes on with new dialogues and empty memories."""
    assert {run.algorithm for run in RUNS.values()} == {*ALGORITHMS} - {"policy-manager"}


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
    more |= {"hyperparameters": run.hyperparameters, "total_timesteps": run.steps, **run.more}
    whole, resumed = whole_and_resumed(monkeypatch, tmp_path, run.env, run.algorithm, **more)
    assert whole.num_timesteps == resumed.num_timesteps >= run.steps
    assert weights_of(whole)
    assert_same_model(whole, resumed)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert len(evaluations(tmp_path / "cut").get("timesteps", [])) >= 2 * ("eval_freq" in run.more)
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
