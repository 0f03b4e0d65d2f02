"""Workloads of question games: twenty questions, and visual dialogue with the exact guesser."""

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.environments.workloads import BATCH, Work, run_batched, run_single
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import GreedyQuestioner, TableAnswerer
from dialgym.tasks.visual_dialogue import VisualDialogue

SCRIPT = 4096
VISUAL, SCENES, ROWS = "dialgym/VisualDialogue-utterance-v0", 1000, 64


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


def visual_questions() -> Work:
    """Questions about one scene after another, each answered and ranked."""
    env: Any = gym.make(VISUAL)
    assert len(env.unwrapped.task.pool) == SCENES
    return run_single(env, _asked(env.unwrapped.task))


def batched_visual_questions() -> Work:
    """The same in a batch."""
    env: Any = gym.make_vec(VISUAL, ROWS, autoreset_mode="SameStep")
    asked = _asked(env.task)
    return run_batched(env, [asked[i : i + ROWS] for i in range(0, SCRIPT, ROWS)])


def _asked(task: Any) -> list[str]:
    """Questions at random, all as likely."""
    rng = np.random.default_rng(0)
    return [task.pool.questions[i] for i in rng.integers(len(task.pool.questions), size=SCRIPT)]


def greedy_visual_questions(dialogues: int = 100) -> Work:
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
