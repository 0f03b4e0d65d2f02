"""The measurements: a few iterations each, in bfloat16, and their rates by wall time.

Weights are random: speed does not depend on what they say, but that replies are as long as they can
be. The environment and its rewards are included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from types import MappingProxyType
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import dialgym
from agents.offline.ilql import ILQL
from agents.online.ppo import SequencePPO
from agents.policies.gpt import GPTPolicy
from benchmarks.gpu.plans import Plan, Shape
from benchmarks.training import language
from benchmarks.training.offline import Steps
from benchmarks.training.tiny import HuggingFaceGPT
from benchmarks.training.workload import REPLY, reply_env

WORDLE, WORDLE_STEPS = "dialgym/Wordle-200-v0", 36
LONG = {"shortest": 44, "longest": 46}
"""Sizes of `Reply` for dialogues of about 256 tokens."""
OPENRL_EPOCHS = 5
OPENRL, RL4LMS = 13.2, 11.26
"""Steps a second of both with GPT-2 small on DailyDialog, on an RTX 3090, by OpenRL's tutorial."""
USUAL_STEPS = 4
GAMES, GRADIENT_STEPS = 16, 10
"""Stored games for each dialogue of a batch, and gradient steps that are timed together."""
Figures = dict[str, Any]
Measurement = Callable[[Plan, float], Figures]
"""Of a plan and the time (`time.monotonic`) after which no further iteration begins."""


def gpt(plan: Plan, until: float) -> Figures:
    """PPO of GPT-2 small's shape and vocabulary in dialogues of 256 tokens."""
    return _replies(plan, plan.gpt, until)


def qwen(plan: Plan, until: float) -> Figures:
    """The same of half a billion weights, through the route of Hugging Face's models."""
    return _replies(plan, plan.qwen, until)


def daily_dialog(plan: Plan, until: float) -> Figures:
    """PPO of GPT-2 small's shape on DailyDialog with its rewards, in OpenRL's shape."""
    env = dialgym.sb3_vec_env(language.ID, plan.n_envs, seed=0)
    found = _ppo(plan, plan.gpt, env, REPLY, OPENRL_EPOCHS if plan.n_epochs > 1 else 1, until)
    found["steps/s of OpenRL, RTX 3090"] = OPENRL
    found["steps/s of RL4LMs, RTX 3090"] = RL4LMS
    return found


def wordle(plan: Plan, until: float) -> Figures:
    """PPO of GPT-2 small's shape on Wordle, with its 32 tokens."""
    env = dialgym.sb3_vec_env(WORDLE, plan.n_envs, seed=0)
    return _ppo(plan, plan.gpt, env, WORDLE_STEPS, plan.n_epochs, until)


def stock(plan: Plan, until: float) -> Figures:
    """Stock PPO on Wordle with a Hugging Face GPT-2 as extractor, which reads all at every step."""
    env = dialgym.sb3_vec_env(WORDLE, plan.n_envs, seed=0)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=USUAL_STEPS,
        batch_size=env.num_envs,
        n_epochs=plan.n_epochs,
        policy_kwargs={
            "features_extractor_class": HuggingFaceGPT,
            "features_extractor_kwargs": {"preset": plan.gpt.policy["preset"]},
            "net_arch": [],
            "ortho_init": False,
        },
        seed=0,
        device=plan.device,
    )
    steps = env.num_envs * USUAL_STEPS
    learn = lambda: model.learn(steps, reset_num_timesteps=False)  # noqa: E731
    spent = [seconds for (seconds,) in _timed(plan, until, (learn,))]
    env.close()
    weights = _weights(model.policy)
    return {"model": plan.gpt.name, "weights": weights, "steps/s": steps / median(spent)}


def ilql(plan: Plan, until: float) -> Figures:
    """ILQL's gradient steps of GPT-2 small's shape on stored games of Wordle."""
    games = dialgym.collect(WORDLE, "random-mixture", GAMES * plan.n_envs, seed=0)
    steps = Steps(
        ILQL,
        games,
        dict(plan.gpt.policy),
        batch_size=plan.n_envs,
        compute={"autocast": "bf16"},
        device=plan.device,
    )
    tokens: list[int] = []

    def several() -> None:
        before = steps.tokens
        for _ in range(GRADIENT_STEPS):
            steps()
        tokens.append(steps.tokens - before)

    spent = [seconds for (seconds,) in _timed(plan, until, (several,))]
    rate = median(count / seconds for count, seconds in zip(tokens[1:], spent))
    weights = _weights(steps.model.policy)
    return {
        "model": plan.gpt.name,
        "weights": weights,
        "update, tokens/s": rate,
        "gradient steps/s": GRADIENT_STEPS / median(spent),
        **_share(plan, 6 * weights * rate),
    }


MEASUREMENTS: Mapping[str, Measurement] = MappingProxyType(
    {
        "PPO, 256 tokens": gpt,
        "PPO, 256 tokens, Hugging Face": qwen,
        "PPO, DailyDialog": daily_dialog,
        "ILQL, Wordle": ilql,
        "PPO, Wordle": wordle,
        "stock PPO, Wordle": stock,
    }
)
"""In the order of what is worth most, should time run out."""


def _replies(plan: Plan, shape: Shape, until: float) -> Figures:
    env = reply_env(plan.n_envs, words=shape.words, **LONG)
    return _ppo(plan, shape, env, REPLY, plan.n_epochs, until)


def _ppo(
    plan: Plan, shape: Shape, env: VecEnv, n_steps: int, n_epochs: int, until: float
) -> Figures:
    """Rollouts and updates of SequencePPO, apart and together."""
    with shape.policy_kwargs() as policy_kwargs:
        model: Any = SequencePPO(
            GPTPolicy,
            env,
            n_steps=n_steps,
            batch_size=env.num_envs * n_steps // 4,
            n_epochs=n_epochs,
            compute={"autocast": "bf16"},
            policy_kwargs=policy_kwargs,
            seed=0,
            device=plan.device,
        )
    _, callback = model._setup_learn(10**9)

    def rollout() -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, n_steps)

    spent = _timed(plan, until, (rollout, model.train))
    rollouts, updates = (median(column) for column in zip(*spent, strict=True))
    steps, read = env.num_envs * n_steps, int(model.rollout.sequences.lengths.sum())
    env.close()
    embedding = model.policy.backbone.embedding
    weights, width = _weights(model.policy), embedding.shape[1]
    core = weights - embedding.numel()
    operations = 6 * n_epochs * (core * read + embedding.shape[0] * width * steps) / updates
    return {
        "model": shape.name,
        "weights": weights,
        "vocabulary": embedding.shape[0],
        "rollout, tokens/s": steps / rollouts,
        "update, tokens/s": n_epochs * read / updates,
        "steps/s": steps / (rollouts + updates),
        **_share(plan, operations),
    }


def _weights(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def _share(plan: Plan, operations: float) -> Figures:
    """Per cent of the device's peak that so many operations a second are.

    Six a weight and token: two forward, four backward (Kaplan et al. 2020), those of attention left
    out; the head's where a decision is.
    """
    return {} if plan.peak is None else {"share of the bf16 peak, %": 100 * operations / plan.peak}


def _timed(
    plan: Plan, until: float, works: tuple[Callable[[], object], ...]
) -> list[tuple[float, ...]]:
    """Seconds of each work, for each time that all have been done in turn after a first one."""
    _each(plan, works)
    spent: list[tuple[float, ...]] = []
    while len(spent) < plan.repeats and (not spent or time.monotonic() < until):
        spent.append(_each(plan, works))
    return spent


def _each(plan: Plan, works: tuple[Callable[[], object], ...]) -> tuple[float, ...]:
    return tuple(_seconds(plan, work) for work in works)


def _seconds(plan: Plan, work: Callable[[], object]) -> float:
    _wait(plan)
    start = time.perf_counter()
    work()
    _wait(plan)
    return time.perf_counter() - start


def _wait(plan: Plan) -> None:
    if plan.device == "cuda":
        torch.cuda.synchronize()
