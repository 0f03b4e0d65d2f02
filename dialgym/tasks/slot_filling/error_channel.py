"""The error channel: from what the user said to an n-best list of hypotheses with probabilities.

Acts are confused with others that sound alike, or with any. The statistics of the lists are those
of the second Dialog State Tracking Challenge as PyDial's benchmark uses them.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

import numpy as np

from dialgym.errors import one_of
from dialgym.language.acts import NULL, Act, Hypotheses, SlotValue
from dialgym.simulators.speech_errors import (
    CONFUSE_SLOT,
    CONFUSE_TYPE,
    Neighbours,
    check_rate,
    draw_neighbour,
    neighbours,
)
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, TYPE, Ontology

Generator = np.random.Generator
ACTS = ("hello", "thankyou", "ack", "bye", "inform", "request", "reqalts", "reqmore", "confirm",
        "affirm", "negate", "deny", "repeat", "null")  # fmt: skip
"""The types that an act may seem to have."""
_ONE_SLOT, _ONE_VALUE = ("request",), ("inform", "reqalts", "confirm", "affirm", "negate")
TRIES = 25
LOWEST, HIGHEST = 0.01, 0.99
"""The range of a score."""
FIDELITIES = ("correct", "pydial")
"""Without faults of the original, or with those that change results."""


class RandomConfusions:
    """Any other type, slot or value, all equally likely."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._values = {s: (*v, DONTCARE) for s, v in ontology.informable.items()}
        self._place = {s: {v: i for i, v in enumerate(own)} for s, own in self._values.items()}

    def confuse(self, act: Act, rng: Generator) -> Act | None:
        """Another act than `act`, and never a ``bye``; None if none was found in 25 tries."""
        for _ in range(TRIES):
            other = self._try(act, rng)
            if other.type != "bye" and not other.same(act):
                return other
        return None

    def _try(self, act: Act, rng: Generator) -> Act:
        draw = rng.random()
        if draw < CONFUSE_TYPE or not act.items or not act.items[0].slot:
            return self._with_other_type(act, rng)
        if draw < CONFUSE_TYPE + CONFUSE_SLOT:
            return self._with_other_slots(act, rng)
        return self._with_other_value(act, rng)

    def _with_other_type(self, act: Act, rng: Generator) -> Act:
        kind = self._type(act.type, rng)
        if kind not in _ONE_SLOT + _ONE_VALUE:
            return Act(kind)
        slot = _any(self.ontology.requestable, rng)
        value = self._any_value(slot, rng) if kind in _ONE_VALUE else None
        return Act(kind, (SlotValue(slot, value),))

    def _with_other_slots(self, act: Act, rng: Generator) -> Act:
        items = list(act.items)
        for place, item in enumerate(items):
            if item.slot in ("", TYPE):
                break
            slot = self._slot(item.slot, rng)
            items[place] = SlotValue(slot, item.value and self._any_value(slot, rng))
        return Act(act.type, tuple(items))

    def _with_other_value(self, act: Act, rng: Generator) -> Act:
        place = int(rng.random() * len(act.items))
        slot, value, _ = act.items[place]
        if value is None or slot in ("", TYPE):
            return act
        other = SlotValue(slot, self._value(slot, value, rng))
        return Act(act.type, (*act.items[:place], other, *act.items[place + 1 :]))

    def _any_value(self, slot: str, rng: Generator) -> str | None:
        return _any(self._values[slot], rng) if slot in self._values else None

    def _type(self, kind: str, rng: Generator) -> str:
        return _any_but(kind, ACTS, rng)

    def _slot(self, slot: str, rng: Generator) -> str:
        return _any_but(slot, self.ontology.requestable, rng)

    def _value(self, slot: str, value: str, rng: Generator) -> str | None:
        if slot not in self._values:
            return None
        return _any_of_others(value, self._values[slot], self._place[slot], rng)


class LevenshteinConfusions(RandomConfusions):
    """One of the six words with the smallest edit distance, the nearer the more likely.

    The probability is the reciprocal of the distance, normalised, plus 0.15, normalised. Of words
    equally far the first in the ontology is the nearer.
    """

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self._types = neighbours(ACTS)
        self._slots = neighbours(ontology.requestable, without=NAME)
        self._near: dict[str, Neighbours] = {}
        self._confusable = {*ontology.system_requestable, NAME}

    def _type(self, kind: str, rng: Generator) -> str:
        return (
            draw_neighbour(self._types[kind], rng)
            if kind in self._types
            else super()._type(kind, rng)
        )

    def _slot(self, slot: str, rng: Generator) -> str:
        near = self._slots.get(slot, ([], []))
        return draw_neighbour(near, rng) if near[0] else super()._slot(slot, rng)

    def _value(self, slot: str, value: str, rng: Generator) -> str | None:
        if slot in self._confusable:
            if slot not in self._near:
                self._near[slot] = neighbours(self._values[slot])
            if value in self._near[slot]:
                return draw_neighbour(self._near[slot][value], rng)
        return super()._value(slot, value, rng)


def _any(options: Sequence[str], rng: Generator) -> str:
    return options[int(rng.random() * len(options))]


def _any_but(word: str, options: Sequence[str], rng: Generator) -> str:
    others = [option for option in options if option != word]
    return _any(others, rng) if others else word


def _any_of_others(
    word: str, options: Sequence[str], place: Mapping[str, int], rng: Generator
) -> str:
    """`_any_but`, of options of which the place of each is known."""
    at = place.get(word)
    if at is None or len(options) == 1:
        return _any_but(word, options, rng) if at is None else word
    draw = int(rng.random() * (len(options) - 1))
    return options[draw + (draw >= at)]


@dataclass(frozen=True)
class Statistics:
    """The form of lists of hypotheses.

    Attributes:
        right_lengths, wrong_lengths: relative frequency of lists of 1, 2 ... hypotheses, of which
            the first is right, or wrong.
        truth: how often the truth is first, second ... in a list that is wrong; else it is absent.
        right_means, right_variances: of the scores of a list that is right, by rank; the last is
            that of anything else.
        wrong_means, wrong_variances: of one that is wrong.
    """

    right_lengths: tuple[float, ...]
    wrong_lengths: tuple[float, ...]
    truth: tuple[float, ...]
    right_means: tuple[float, ...]
    right_variances: tuple[float, ...]
    wrong_means: tuple[float, ...]
    wrong_variances: tuple[float, ...]


SET1 = Statistics(
    right_lengths=(0.264, 0.215, 0.138, 0.099, 0.080),
    wrong_lengths=(0.300, 0.068, 0.085, 0.072, 0.079),
    truth=(0.0, 0.179, 0.063, 0.027, 0.017),
    right_means=(0.871, 0.103, 0.045, 0.032, 0.027, 0.049),
    right_variances=(0.029, 0.010, 0.002, 0.001, 0.0, 0.001),
    wrong_means=(0.757, 0.179, 0.077, 0.048, 0.037, 0.065),
    wrong_variances=(0.052, 0.014, 0.003, 0.001, 0.0, 0.002),
)
SET3 = Statistics(
    right_lengths=(0.147, 0.430, 0.212, 0.147, 0.048),
    wrong_lengths=(0.351, 0.388, 0.158, 0.071, 0.020),
    truth=(0.0, 0.116, 0.027, 0.007, 0.002),
    right_means=(0.905, 0.101, 0.017, 0.008, 0.005, 0.010),
    right_variances=(0.016, 0.013, 0.002, 0.001, 0.0, 0.001),
    wrong_means=(0.871, 0.164, 0.065, 0.043, 0.030, 0.054),
    wrong_variances=(0.029, 0.020, 0.005, 0.002, 0.001, 0.003),
)
STATISTICS: Mapping[str, Statistics] = MappingProxyType({"set1": SET1, "set3": SET3})


class SingleChannel:
    """One hypothesis, surely: with probability `rate` any other act than what was said."""

    def __init__(self, ontology: Ontology, rate: float) -> None:
        self.rate = check_rate(rate)
        self._confusions = RandomConfusions(ontology)

    def hear(self, act: Act, rng: np.random.Generator) -> Hypotheses:
        """Hypotheses of `act`."""
        if self.rate and rng.random() < self.rate:
            return ((self._confusions.confuse(act, rng) or act, 1.0),)
        return ((act, 1.0),)


class ListChannel:
    """Up to five hypotheses and ``null()``; with probability `rate` the first is wrong.

    Args:
        ontology: the domain's slots and values.
        rate: how often the first hypothesis is wrong.
        statistics: how the lists look.
        fidelity: ``"pydial"`` for two faults of the original: the truth is never absent from a
            wrong list that is long enough, and a list without it is scored as a right one.
    """

    def __init__(
        self, ontology: Ontology, rate: float, statistics: Statistics, fidelity: str = "correct"
    ) -> None:
        one_of("fidelity", fidelity, FIDELITIES, "the error channel")
        self.rate, self.faulty = check_rate(rate), fidelity == "pydial"
        self._confusions = LevenshteinConfusions(ontology)
        self._right_lengths = _cumulated(statistics.right_lengths)
        self._wrong_lengths = _cumulated(statistics.wrong_lengths)
        truth = _cumulated(statistics.truth) if self.faulty else list(accumulate(statistics.truth))
        self._truth = truth
        self._right = _scores(statistics.right_means, statistics.right_variances)
        self._wrong = _scores(statistics.wrong_means, statistics.wrong_variances)

    def hear(self, act: Act, rng: np.random.Generator) -> Hypotheses:
        """Hypotheses of `act`, the best first but for ``null()``, which takes the rest."""
        wrong = rng.random() < self.rate
        place = bisect_right(self._truth, rng.random()) if wrong else 0
        length = 1 + _place(self._wrong_lengths if wrong else self._right_lengths, rng)
        acts = self._fill(act, length, place, rng)
        by_right = not wrong or (self.faulty and place >= length)
        return self._score(acts, self._right if by_right else self._wrong, rng)

    def _fill(self, act: Act, length: int, place: int, rng: np.random.Generator) -> list[Act]:
        """`length` different acts, with `act` at `place` if that is in the list."""
        acts: list[Act] = []
        for rank in range(length):
            other = act if rank == place else self._other(act, acts, rng)
            if other is not None:
                acts.append(other)
        return acts or [act]

    def _other(self, act: Act, known: list[Act], rng: np.random.Generator) -> Act | None:
        """A confusion that is not in the list yet; None where there seems to be no more."""
        for _ in range(100):
            other = self._confusions.confuse(act, rng)
            if other is not None and not any(other.same(one) for one in known):
                return other
        return None

    def _score(
        self, acts: list[Act], table: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
    ) -> Hypotheses:
        drawn = rng.standard_normal(len(table[0])) * table[1] + table[0]
        scores = [min(max(score, LOWEST), HIGHEST) for score in drawn.tolist()]
        total, rest = sum(scores), sum(scores[len(acts) :])
        heard = [(act, score / total) for act, score in zip(acts, scores)]
        for rank, (act, score) in enumerate(heard):
            if act == NULL:
                heard[rank] = (act, score + rest / total)
                return heard
        return [*heard, (NULL, rest / total)]


def channel_of(
    noise: str, ontology: Ontology, rate: float, fidelity: str
) -> SingleChannel | ListChannel:
    """The channel of a setting `noise`: ``"single"``, or a name of `STATISTICS`."""
    one_of("noise", noise, (*STATISTICS, "single"), "SlotFilling")
    if noise == "single":
        return SingleChannel(ontology, rate)
    return ListChannel(ontology, rate, STATISTICS[noise], fidelity)


def _cumulated(weights: Sequence[float]) -> list[float]:
    total = sum(weights)
    return list(accumulate(weight / total for weight in weights))


def _place(below: list[float], rng: np.random.Generator) -> int:
    return min(bisect_right(below, rng.random()), len(below) - 1)


def _scores(means: Sequence[float], variances: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(means), np.sqrt(np.array(variances))
