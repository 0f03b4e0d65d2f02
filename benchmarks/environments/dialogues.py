"""Whole dialogues of slot filling, to measure their speed: the act view, the handcrafted policy."""

from typing import Any

import gymnasium as gym
import numpy as np

import dialgym
from benchmarks.environments.workloads import Work
from dialgym.registry import entry_of
from dialgym.tasks.slot_filling.policies import HandcraftedSystem, SlotAgendaPolicy
from dialgym.views.dialogue import LoopedBatch

ROWS = 64
STEPS = 32  # of a batch, or dialogues of a single env, in one go


def dialogue_label(name: str) -> str:
    """Name of the environment of a row of the registry in figures."""
    entry = entry_of(f"{name}-act-v0")
    return f"{name} ({entry.stand_in})" if entry.stand_in else name


def single_dialogues(name: str) -> Work:
    """Dialogues of one env."""
    env: Any = gym.make(f"dialgym/{name}-act-v0")
    own, policy, rng = env.unwrapped, HandcraftedSystem(), np.random.default_rng(0)
    env.reset(seed=0)

    def play() -> int:
        for _ in range(STEPS):
            over = False
            env.reset()
            while not over:
                _, _, over, _, _ = env.step(policy.act(own.task, own.dialogue.state, rng))
        return STEPS

    return play


def batched_dialogues(name: str, arrays: bool = True) -> Work:
    """Dialogues of a batch; without `arrays` each row is updated by itself."""
    env: Any = gym.make_vec(f"dialgym/{name}-act-v0", ROWS, autoreset_mode="SameStep")
    if not arrays:
        env.dialogues = LoopedBatch(env.task, ROWS, env.learner, SlotAgendaPolicy())
    policy, rng = HandcraftedSystem(), np.random.default_rng(0)
    env.reset(seed=0)

    def play() -> int:
        ended = 0
        for _ in range(STEPS):
            states = map(env.dialogues.state, range(ROWS))
            actions = [policy.act(env.task, state, rng) for state in states]
            _, _, terminated, truncated, _ = env.step(np.array(actions))
            ended += int((terminated | truncated).sum())
        return ended

    return play


class AtRandom:
    """Draws acts within masks, as a trained model is asked to, and takes no time to think."""

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, Any]:
        drawn = np.random.default_rng(0).random(action_masks.shape)
        return (drawn * action_masks).argmax(1), state


def evaluated_dialogues(name: str) -> Work:
    """Dialogues of `dialgym.evaluate`, each played once to its end, twice as many as rows."""

    def play() -> int:
        dialgym.evaluate(AtRandom(), f"{name}-act-v0", 2 * ROWS, num_envs=ROWS)
        return 2 * ROWS

    return play
