"""Workloads of twenty questions: turns of random questions, and dialogues of the greedy policy."""

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.environments.workloads import BATCH, Work, run_batched, run_single
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import GreedyQuestioner, TableAnswerer

SCRIPT = 4096


def single_questions() -> Work:
    """Random questions and guesses in one dialogue."""
    env: Any = gym.make("dialgym/TwentyQuestions-utterance-v0")
    said = np.random.default_rng(0).choice(env.unwrapped.task.said, SCRIPT)
    return run_single(env, said.tolist())


def batched_questions() -> Work:
    """The same in a batch; with same-step resets every step is a turn in each row."""
    name = "dialgym/TwentyQuestions-utterance-v0"
    env: Any = gym.make_vec(name, BATCH, autoreset_mode="SameStep")
    said = np.random.default_rng(0).choice(env.task.said, (16, BATCH))
    return run_batched(env, [tuple(row) for row in said.tolist()])


def greedy_questions() -> Work:
    """Turns of the questioner that asks what tells most, with exact beliefs about 401 things."""
    task = TwentyQuestions()
    batch = task.batch(BATCH, "system", TableAnswerer())
    assert batch is not None, "its default answerer has one"
    rngs = [np.random.default_rng(row) for row in range(BATCH)]
    policy = GreedyQuestioner()

    def play() -> int:
        turns, rows = 0, np.arange(BATCH)
        batch.begin(rows, batch.draw(rows, rngs, {}), rngs)
        while len(rows):
            mine = [rngs[row] for row in rows.tolist()]
            texts = np.array(policy.reply_many(task, batch.states(rows), mine))
            turns += len(rows)
            rows = rows[~batch.say(rows, texts, rngs).terminated]
        return turns

    return play
