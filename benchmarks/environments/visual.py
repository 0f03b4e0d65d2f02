"""Questions of visual dialogue with the exact guesser, to measure their speed."""

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.environments.workloads import Work
from dialgym.tasks.visual_dialogue import VisualDialogue

ENV, SCENES, ROWS = "dialgym/VisualDialogue-utterance-v0", 1000, 64
SCRIPT = 4096
"""Questions prepared beforehand."""


def asked(task: Any) -> list[str]:
    """Questions at random, all as likely."""
    rng = np.random.default_rng(0)
    return [task.pool.questions[i] for i in rng.integers(len(task.pool.questions), size=SCRIPT)]


def questions() -> Work:
    """Questions in one environment after another, each answered and ranked."""
    env: Any = gym.make(ENV)
    texts = asked(env.unwrapped.task)
    assert len(env.unwrapped.task.pool) == SCENES
    env.reset(seed=0)

    def play() -> int:
        for text in texts:
            *_, terminated, truncated, _ = env.step(text)
            if terminated or truncated:
                env.reset()
        return len(texts)

    return play


def batched_questions() -> Work:
    """The same in a batch."""
    env: Any = gym.make_vec(ENV, ROWS, autoreset_mode="SameStep")
    texts = np.array(asked(env.unwrapped.task)).reshape(-1, ROWS)
    env.reset(seed=0)

    def play() -> int:
        for row in texts:
            env.step(row.tolist())
        return texts.size

    return play


def greedy_questions(dialogues: int = 100) -> Work:
    """Questions of the greedy questioner, of 503 the best."""
    task = VisualDialogue()
    policy = task.speaker_named("system", "greedy")

    def play() -> int:
        rng, count = np.random.default_rng(0), 0
        for _ in range(dialogues):
            state = task.initial(rng)
            while not state.over:
                task.speak(state, policy.reply(task, state, rng), rng)
                task.speak(state, task.answerer.reply(task, state, rng), rng)
            count += len(state.history)
        return count

    return play
