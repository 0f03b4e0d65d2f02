"""Dialogues of twenty questions for the tests: rewards by turn, and tables of any kind."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.tasks.twenty_questions import TwentyQuestions, TwentyQuestionsState
from dialgym.tasks.twenty_questions.policies import TableAnswerer


def play(
    task: TwentyQuestions, policy: Any, options: Mapping[str, Any] | None = None, seed: int = 0
) -> list[float]:
    """The questioner's rewards, by turn, in a dialogue with the default answerer."""
    rng = np.random.default_rng(seed)
    state, answerer, rewards = task.initial(rng, options), TableAnswerer(), []
    while not state.over:
        rewards.append(task.speak(state, policy.reply(task, state, rng), rng).rewards["system"])
        task.speak(state, answerer.reply(task, state, rng), rng)
    return rewards


def say(
    task: TwentyQuestions, state: TwentyQuestionsState, texts: Sequence[str], seed: int = 0
) -> list[tuple[str, float, bool]]:
    """Say some texts: what each is answered, its reward, and whether it ends the dialogue."""
    rng, answerer, heard = np.random.default_rng(seed), TableAnswerer(), []
    for text in texts:
        asked = task.speak(state, text, rng)
        answer = answerer.reply(task, state, rng)
        answered = task.speak(state, answer, rng)
        reward = asked.rewards["system"] + answered.rewards["system"]
        heard.append((answer, reward, answered.terminated))
    return heard


def begun(task: TwentyQuestions, item: str) -> TwentyQuestionsState:
    return task.initial(np.random.default_rng(0), {"item": item})


def table_file(folder: Any, truth: np.ndarray) -> str:
    """A file of a table of things t0, t1 ... and questions ``is it q0?`` ..., 2 for unknown."""
    rows = [[f"t{i}x", *("01?"[value] for value in row)] for i, row in enumerate(truth)]
    lines = [["name", *(f"q{j}x" for j in range(truth.shape[1]))], *rows]
    path = folder / "table.csv"
    path.write_text("\n".join(",".join(line) for line in lines) + "\n", "utf-8")
    return str(path)
