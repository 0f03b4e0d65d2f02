"""Extras of infos and rewards: what some options add at each step, by one table."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dialgym.errors import finite_number
from dialgym.rewards import Reply, make_rewards
from dialgym.tasks import Task
from dialgym.tasks.posterior import ExactPosterior, NamesTruth
from dialgym.views.options import ViewOptions


class InfoExtra(NamedTuple):
    """A key of each info, and its text by the state of a dialogue."""

    key: str
    text: Callable[[Any], str]


class RewardExtra(NamedTuple):
    """A reward by which a level of the dialogue has risen, times a weight."""

    weight: float
    levels: Callable[[Sequence[Any], np.ndarray], np.ndarray]
    """Of k states, and which of them are over, (k,) bool: (k,)."""


def anchor(task: Task, options: ViewOptions) -> InfoExtra:
    """``anchor``, the name of the learner's situation; see `Task.anchor`."""
    return InfoExtra("anchor", partial(task.anchor, party=options.learner))


def truth(task: Task, options: ViewOptions) -> InfoExtra:
    """``truth``, the utterance that names what is hidden; see `dialgym.tasks.NamesTruth`.

    Raises:
        ValueError: the task cannot name what is hidden.
    """
    if isinstance(task, NamesTruth):
        return InfoExtra("truth", task.naming)
    raise ValueError(
        f"truths of {task.name}: expected a task whose learner can name what is hidden "
        f"(naming), such as TwentyQuestions or Wordle; {task.name} has none. Leave truths "
        "at False."
    )


def belief_gain(task: Task, options: ViewOptions) -> RewardExtra:
    """Information gain: the bits by which the posterior probability of the truth has risen.

    The gain of a turn is weight * (log2 p(truth) after it - log2 p(truth) before it); those of a
    dialogue add up to weight * log2(p(truth) at the end * k) where all k things were as likely at
    first. It is negative where an answer misleads. After Wang et al. (2025), arXiv 2510.14967, who
    reward a turn by how much a model's own probability of the right answer has risen.

    Raises:
        ValueError: the task has no exact posterior, or the weight is not a finite number.
    """
    if not isinstance(task, ExactPosterior):
        raise ValueError(
            f"belief_gain of {task.name}: expected a task with an exact posterior "
            "(hypotheses, posterior, truth, suppose), such as TwentyQuestions; "
            f"{task.name} has none. Leave belief_gain at 0."
        )
    known: ExactPosterior = task

    def bits(states: Sequence[Any], over: np.ndarray) -> np.ndarray:
        beliefs = np.array([known.posterior(state)[known.truth(state)] for state in states])
        logs: np.ndarray = np.log2(np.maximum(beliefs, np.finfo(np.float64).tiny))
        return logs

    weight = finite_number(f"belief_gain of {task.name}", options.belief_gain)
    return RewardExtra(weight, bits)


def final_reward(task: Task, options: ViewOptions) -> RewardExtra:
    """Rewards of language for whole dialogues, paid at their end beside the task's.

    The last utterance is scored as the reply, all others are its context, without what is private:
    as the reward model of ``successes.jsonl`` has learned who was served. A dialogue that only the
    view cuts short is not scored.

    Raises:
        ValueError: as of `dialgym.rewards.make_rewards`.
    """
    rewards = make_rewards(options.final_reward or {})

    def judged(states: Sequence[Any], over: np.ndarray) -> np.ndarray:
        levels, ended = np.zeros(len(states)), np.flatnonzero(over)
        if len(ended):
            replies = [_whole(task, states[row], options.learner) for row in ended.tolist()]
            levels[ended] = sum(rewards.score(replies).values())
        return levels

    return RewardExtra(1.0, judged)


def _whole(task: Task, state: Any, party: str) -> Reply:
    """A dialogue as a reply to all that was said before its last utterance."""
    texts = [said.text for said in task.transcript(state, party) if not said.private]
    return Reply(texts[-1], tuple(texts[:-1]))


EXTRAS: Mapping[str, Callable[[Task, ViewOptions], InfoExtra | RewardExtra]] = {
    "anchors": anchor,
    "truths": truth,
    "belief_gain": belief_gain,
    "final_reward": final_reward,
}
"""By option."""


class Extras:
    """The extras that were asked for, of N dialogues.

    Args:
        task: the rules.
        options: of the view.
        num_envs: N.

    Attributes:
        asked: True if there are any.
        texts: by key of the info, (N,) object.
    """

    def __init__(self, task: Task, options: ViewOptions, num_envs: int) -> None:
        made = [make(task, options) for name, make in EXTRAS.items() if getattr(options, name)]
        self.asked = bool(made)
        self._infos = [extra for extra in made if isinstance(extra, InfoExtra)]
        self._rewards = [extra for extra in made if isinstance(extra, RewardExtra)]
        self.texts = {extra.key: np.full(num_envs, "", object) for extra in self._infos}
        self._levels = np.zeros((len(self._rewards), num_envs))

    def update(
        self, rows: np.ndarray, states: Sequence[Any], over: np.ndarray | None = None
    ) -> np.ndarray:
        """Take in the states of rows (k,) after an exchange; (k,) rewards of it.

        `over`, (k,) bool, says which dialogues it has ended; None for none.
        """
        over = np.zeros(len(rows), bool) if over is None else over
        texts = {info.key: [info.text(state) for state in states] for info in self._infos}
        levels = [reward.levels(states, over) for reward in self._rewards]
        for key, values in texts.items():
            self.texts[key][rows] = values
        rewards = np.zeros(len(rows))
        for reward, before, now in zip(self._rewards, self._levels, levels):
            rewards += reward.weight * (now - before[rows])
            before[rows] = now
        return rewards
