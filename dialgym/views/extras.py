"""Extras of infos and rewards: what some options add at each step, by one table."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dialgym.errors import finite_number, unknown
from dialgym.language import render_transcript
from dialgym.rewards import Composite, Reply, make_rewards
from dialgym.rewards.lm_judge import DIALOGUE, Account, JudgedDialogue, indented
from dialgym.simulators.language_model import DRAWN
from dialgym.tasks import BatchOutcome, Task
from dialgym.tasks.batch import Exchange
from dialgym.tasks.posterior import ExactPosterior, ExactValue, NamesTruth, entropy
from dialgym.views.options import TASK, ViewOptions

Paid = TypeVar("Paid", Exchange, BatchOutcome)
GAIN = "belief gain"
"""Name of the part of a reward that is information gain."""


class InfoExtra(NamedTuple):
    """A key of each info, and its content by the state of a dialogue."""

    key: str
    content: Callable[[Any], Any]


class Ended(NamedTuple):
    """Dialogues that an exchange has ended: their places among k, rows, and generators."""

    places: Sequence[int]
    rows: Sequence[int]
    rngs: Sequence[np.random.Generator]


class RewardExtra(NamedTuple):
    """Parts of a reward by name, each of them the rise of a level of the dialogue.

    Attributes:
        names: of the parts, as they are called in infos.
        levels: of k states, some of which are over: (k,) by name.
    """

    names: Sequence[str]
    levels: Callable[[Sequence[Any], Ended], Mapping[str, np.ndarray]]


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


def value(task: Task, options: ViewOptions) -> InfoExtra:
    """``value``, what the best play can expect from here on; see `dialgym.tasks.ExactValue`.

    Raises:
        ValueError: the task does not know it.
    """
    return InfoExtra("value", _exact_value(task, "values", "False").value)


def _exact_value(task: Task, option: str, none: str) -> ExactValue:
    if isinstance(task, ExactValue):
        return task
    raise ValueError(
        f"{option} of {task.name}: expected a task that knows what the best play is worth (value), "
        f"such as TwentyQuestions or Wordle; {task.name} does not. Leave {option} at {none}."
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
    weight = finite_number(f"belief_gain of {task.name}", options.belief_gain)
    return RewardExtra((GAIN,), partial(_bits, task, weight))


def _bits(
    task: ExactPosterior, weight: float, states: Sequence[Any], ended: Ended
) -> Mapping[str, np.ndarray]:
    beliefs = np.array([task.posterior(state)[task.truth(state)] for state in states])
    return {GAIN: weight * np.log2(np.maximum(beliefs, np.finfo(np.float64).tiny))}


def potential(task: Task, options: ViewOptions) -> RewardExtra:
    """Potential-based shaping: each turn is paid the rise of a potential, which is 0 at the end.

    F = w (Phi(s') - Phi(s)), so that those of a dialogue add up to -w Phi(s_0), which no play
    changes: the best play stays the best (Ng, Harada and Russell 1999, theorem 1, with a discount
    of 1). Where the view alone cuts a dialogue short, by its step limit or for want of room, the
    potential stays as it is: learners that add the value of what would follow lose nothing, for
    others the sum depends on the play. The potentials:

    - ``value``: what the best play can expect (`dialgym.tasks.ExactValue`). With weight 1 a turn is
      paid Q* - V* on average: a process reward that is 0 for the best player and what a mistake
      costs for others.
    - ``entropy``: minus the bits that are still hidden (`dialgym.tasks.ExactPosterior`), an
      estimate of it where each question tells a bit at most.

    Raises:
        ValueError: an unknown potential, one that the task does not know, or a weight that is not a
            finite number.
    """
    levels: dict[str, Callable[[Any], float]] = {}
    for name, given in (options.potential or {}).items():
        if name not in POTENTIALS:
            raise unknown("potential", name, POTENTIALS, f"potential of {task.name}")
        weight = finite_number(f"potential of {task.name}, {name}", given)
        levels[f"potential {name}"] = partial(_weighted, POTENTIALS[name](task), weight)
    return RewardExtra([*levels], partial(_potentials, levels))


def _potentials(
    levels: Mapping[str, Callable[[Any], float]], states: Sequence[Any], ended: Ended
) -> Mapping[str, np.ndarray]:
    found = {name: np.array([of(state) for state in states]) for name, of in levels.items()}
    for values in found.values():
        values[[*ended.places]] = 0.0
    return found


def _weighted(of: Callable[[Any], float], weight: float, state: Any) -> float:
    return weight * of(state)


def _known_value(task: Task) -> Callable[[Any], float]:
    return _exact_value(task, "potential", "None").value


def _certainty(task: Task) -> Callable[[Any], float]:
    if isinstance(task, ExactPosterior):
        return partial(_negative_entropy, task)
    raise ValueError(
        f"potential of {task.name}: 'entropy' expected a task with an exact posterior, such as "
        f"TwentyQuestions; {task.name} has none. Leave potential at None."
    )


def _negative_entropy(task: ExactPosterior, state: Any) -> float:
    return -float(entropy(task.posterior(state)))


POTENTIALS: Mapping[str, Callable[[Task], Callable[[Any], float]]] = {
    "value": _known_value,
    "entropy": _certainty,
}
"""Functions of a state, by name."""


def final_reward(task: Task, options: ViewOptions) -> RewardExtra:
    """Rewards of language for whole dialogues, paid at their end beside the task's.

    The last utterance is scored as the reply, all others are its context, without what is private:
    as the reward model of ``successes.jsonl`` has learned who was served. A judge is also told the
    briefs; see `JudgedDialogue`. All dialogues that a step has ended are scored at once, one that
    only the view cuts short is not scored. No text is taken for none here: what ends a dialogue may
    be as short as it likes.

    Raises:
        ValueError: as of `dialgym.rewards.make_rewards`; or a part is called as one of the task's.
    """
    spec = {name: value for name, value in (options.final_reward or {}).items() if name != TASK}
    rewards = make_rewards(spec, guarded=False)
    own = {*task.facts.components.get(options.learner, ())}
    if taken := own & {*spec}:
        raise ValueError(
            f"final_reward of {task.name}: {min(taken)!r} is a part of the task's own reward. Call "
            f"it otherwise, as in {{'judged': {{'reward': {min(taken)!r}}}}}."
        )
    return RewardExtra([*spec], partial(_judged, task, options.learner, [*spec], rewards))


def _judged(
    task: Task,
    learner: str,
    names: Sequence[str],
    rewards: Composite,
    states: Sequence[Any],
    ended: Ended,
) -> Mapping[str, np.ndarray]:
    levels = {name: np.zeros(len(states)) for name in names}
    replies = [
        whole_reply(task, states[place], learner, peek(rng), f"row {row}")
        for place, row, rng in zip(*ended)
    ]
    for name, scores in (rewards.score(replies) if replies else {}).items():
        levels[name][[*ended.places]] = scores
    return levels


def peek(rng: np.random.Generator) -> int:
    """A number that the generator would draw next; it does not."""
    return int(deepcopy(rng).integers(DRAWN))


def whole_reply(task: Task, state: Any, learner: str, drawn: int, where: str) -> Reply:
    """A dialogue as a reply to all that was said before its last utterance.

    Args:
        task: the rules.
        state: the dialogue at its end.
        learner: the party that is scored.
        drawn: number of the dialogue's generator.
        where: name of the dialogue, for errors.
    """
    lines = task.transcript(state, learner)
    texts = [line.text for line in lines if not line.private]
    accounts = tuple(_account(task, state, party) for party in task.parties)
    turns = sum(line.speaker == learner for line in lines)
    case = JudgedDialogue(f"{task.name}, {where}", learner, accounts, turns, drawn)
    return Reply(texts[-1] if texts else "", tuple(texts[:-1]), labels={DIALOGUE: case})


def _account(task: Task, state: Any, party: str) -> Account:
    """A party's side; a line of an utterance that is not its first does not begin as one would."""
    lines = task.transcript(state, party)[task.notes(state, party) :]
    lines = [line._replace(text=indented(line.text)) for line in lines]
    return Account(party, task.brief(state, party), render_transcript(lines).rstrip("\n"))


EXTRAS: Mapping[str, Callable[[Task, ViewOptions], InfoExtra | RewardExtra]] = {
    "anchors": anchor,
    "truths": truth,
    "values": value,
    "belief_gain": belief_gain,
    "potential": potential,
    "final_reward": final_reward,
}
"""By option."""


def check_extras(task: Task, options: ViewOptions) -> None:
    """Raise a ValueError where one of them cannot be, without loading a reward model."""
    for name, make in EXTRAS.items():
        if getattr(options, name) and make is not final_reward:
            make(task, options)


class Extras:
    """The extras that were asked for, of N dialogues.

    Args:
        task: the rules.
        options: of the view.
        num_envs: N.

    Attributes:
        asked: True if there are any.
        texts: by key of the info, its contents (N,) object.
        parts: names of the parts that they add to rewards.
        own: weight of the task's own reward.

    Raises:
        ValueError: one of them cannot be.
    """

    def __init__(self, task: Task, options: ViewOptions, num_envs: int) -> None:
        made = [make(task, options) for name, make in EXTRAS.items() if getattr(options, name)]
        self.asked = bool(made)
        self._infos = [extra for extra in made if isinstance(extra, InfoExtra)]
        self._rewards = [extra for extra in made if isinstance(extra, RewardExtra)]
        self.texts = {extra.key: np.full(num_envs, "", object) for extra in self._infos}
        self.parts = tuple(name for extra in self._rewards for name in extra.names)
        self.own = options.own_weight
        self._levels = {name: np.zeros(num_envs) for name in self.parts}

    def update(
        self,
        rows: np.ndarray,
        states: Sequence[Any],
        over: np.ndarray | None = None,
        rngs: Sequence[np.random.Generator] = (),
    ) -> dict[str, np.ndarray]:
        """Take in the states of rows (k,) after an exchange; (k,) parts of its reward by name.

        `over`, (k,) bool, says which dialogues it has ended, and `rngs` has the generators of all
        rows; None for none.
        """
        places = [] if over is None else np.flatnonzero(over).tolist()
        ended_rows = [int(rows[place]) for place in places]
        ended = Ended(places, ended_rows, [rngs[row] for row in ended_rows])
        texts = {info.key: [info.content(state) for state in states] for info in self._infos}
        levels: dict[str, np.ndarray] = {}
        for reward in self._rewards:
            levels |= reward.levels(states, ended)
        for key, values in texts.items():
            self.texts[key][rows] = values
        parts = {name: now - self._levels[name][rows] for name, now in levels.items()}
        for name, now in levels.items():
            self._levels[name][rows] = now
        return parts

    def added(self, exchange: Paid, parts: Mapping[str, Any]) -> Paid:
        """An exchange, or the outcome of many, with parts beside the task's own."""
        if not self.asked:
            return exchange
        reward = self.own * exchange.reward + sum(parts.values())
        return exchange._replace(reward=reward, components={**exchange.components, **parts})
