"""How fast GPT-2's shape learns on a GPU: ``python -m benchmarks.training gpu``.

SequencePPO in bfloat16 on Wordle, on dialogues of 256 tokens and on replies to everyday dialogue
with its own rewards, 256 of each at once; beside it, in the same run, stock PPO with a
Hugging Face GPT-2 of that shape as features extractor, which reads the whole window at every step.
Then ILQL's gradient steps on stored games of Wordle. Wall time, the
environment included. Without a GPU the same runs with a small model, to show that it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import dialgym
from agents.offline.ilql import ILQL
from agents.online.ppo import SequencePPO
from agents.policies.gpt import GPTPolicy
from benchmarks.environments.timing import Figure
from benchmarks.training import language
from benchmarks.training.offline import Steps
from benchmarks.training.tiny import HuggingFaceGPT
from benchmarks.training.workload import REPLY, reply_env

WORDLE = "dialgym/Wordle-200-v0"
LONG = {"shortest": 44, "longest": 46}
"""Sizes of `Reply` for dialogues of about 256 tokens."""
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
"""Dense bfloat16 operations a second, from the makers' data sheets (SXM versions)."""
USUAL_STEPS = 4


@dataclass(frozen=True)
class Plan:
    """What is run: more where there is a GPU."""

    device: str
    preset: str
    n_envs: int
    repeats: int

    @classmethod
    def of_this_machine(cls) -> Plan:
        """GPT-2 small and 256 dialogues on a GPU; a small model and 8 without."""
        if torch.cuda.is_available():
            return cls("cuda", "small", 256, 3)
        return cls("cpu", "nano", 8, 1)


def figures(plan: Plan | None = None) -> Iterator[Figure]:
    """Steps, tokens, share of the peak and memory, on both workloads."""
    plan = plan or Plan.of_this_machine()
    workloads: dict[str, tuple[Callable[[], VecEnv], int]] = {
        "Wordle": (lambda: dialgym.sb3_vec_env(WORDLE, plan.n_envs, seed=0), 36),
        "256 tokens": (lambda: reply_env(plan.n_envs, **LONG), REPLY),
        "DailyDialog": (lambda: dialgym.sb3_vec_env(language.ID, plan.n_envs, seed=0), REPLY),
    }
    for name, (make, n_steps) in workloads.items():
        yield from _workload(name, make, n_steps, plan)
    yield from _offline(plan)


def _workload(name: str, make: Callable[[], VecEnv], n_steps: int, plan: Plan) -> Iterator[Figure]:
    usual = _usual(make(), plan)
    reference = Figure(f"{name}, stock PPO, steps", usual, "/s")
    yield reference
    ours = _ours(make(), n_steps, plan)
    what = f"{name}, SequencePPO, {plan.n_envs} dialogues, {ours.parameters / 1e6:.0f}M weights"
    yield Figure(f"{what}, steps", ours.end_to_end, "/s", None, reference, "stock")
    yield Figure("  rollout, steps", ours.rollout, "/s")
    yield Figure("  update, tokens", ours.update, "/s")
    yield from _use_of_the_device(ours.parameters, ours.update, plan)


def _offline(plan: Plan) -> Iterator[Figure]:
    games = dialgym.collect(WORDLE, "random-mixture", 16 * plan.n_envs, seed=0)
    steps = Steps(
        ILQL,
        games,
        {"preset": plan.preset},
        batch_size=plan.n_envs,
        compute={"autocast": "bf16"},
        device=plan.device,
    )
    steps()
    if plan.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    before = steps.tokens

    def several() -> None:
        for _ in range(10 * plan.repeats):
            steps()

    seconds = _seconds(several)
    rate = (steps.tokens - before) / seconds
    parameters = sum(p.numel() for p in steps.model.policy.parameters() if p.requires_grad)
    what = f"Wordle, ILQL, {plan.n_envs} dialogues, {parameters / 1e6:.0f}M weights"
    yield Figure(f"{what}, tokens", rate, "/s")
    yield from _use_of_the_device(parameters, rate, plan)


def _use_of_the_device(parameters: int, rate: float, plan: Plan) -> Iterator[Figure]:
    """At `rate` tokens a second of forward and backward through so many weights."""
    # Six operations a weight and token: two forward, four backward (Kaplan et al. 2020).
    peak = next((p for key, p in PEAKS.items() if key in _device_name(plan.device)), None)
    if peak:
        share = 100 * 6 * parameters * rate / peak
        yield Figure("  share of the bfloat16 peak", share, " %")
    if plan.device == "cuda":
        yield Figure("  memory, greatest", torch.cuda.max_memory_allocated() / 2**30, " GiB")


@dataclass(frozen=True)
class Speed:
    """Rates per second of wall time."""

    parameters: int
    rollout: float
    update: float
    end_to_end: float


def _ours(env: VecEnv, n_steps: int, plan: Plan) -> Speed:
    model = SequencePPO(
        GPTPolicy,
        env,
        n_steps=n_steps,
        batch_size=env.num_envs * n_steps // 4,
        n_epochs=4,
        compute={"autocast": "bf16"},
        policy_kwargs={"preset": plan.preset},
        seed=0,
        device=plan.device,
    )
    if plan.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    _, callback = model._setup_learn(10**9)
    rollouts, updates = [], []
    for _ in range(plan.repeats + 1):
        rollouts.append(_seconds(lambda: _collect(model, callback, n_steps)))
        updates.append(_seconds(model.train))
    rollout, update = median(rollouts[1:]), median(updates[1:])
    steps, read = env.num_envs * n_steps, int(model.rollout.sequences.lengths.sum())
    env.close()
    parameters = sum(p.numel() for p in model.policy.parameters())
    return Speed(
        parameters, steps / rollout, model.n_epochs * read / update, steps / (rollout + update)
    )


def _collect(model: Any, callback: Any, n_steps: int) -> None:
    model.collect_rollouts(model.env, callback, model.rollout_buffer, n_steps)


def _usual(env: VecEnv, plan: Plan) -> float:
    """Steps per second of stock PPO; few, since each costs the same."""
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=USUAL_STEPS,
        batch_size=env.num_envs,
        n_epochs=4,
        policy_kwargs={
            "features_extractor_class": HuggingFaceGPT,
            "features_extractor_kwargs": {"preset": plan.preset},
            "net_arch": [],
            "ortho_init": False,
        },
        seed=0,
        device=plan.device,
    )
    steps = env.num_envs * USUAL_STEPS
    model.learn(steps)
    seconds = _seconds(lambda: model.learn(steps, reset_num_timesteps=False))
    env.close()
    return steps / seconds


def _seconds(work: Callable[[], object]) -> float:
    _wait()
    start = time.perf_counter()
    work()
    _wait()
    return time.perf_counter() - start


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "CPU"
