"""Slot filling in batches: users one by one, beliefs, summaries and masks as arrays over rows."""

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from dialgym.language.acts import Act, Hypotheses
from dialgym.tasks.base import SYSTEM, Outcome
from dialgym.tasks.batch import BatchOutcome
from dialgym.tasks.slot_filling.domain.ontology import NAME, NONE
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.summary_acts import SummaryActs
from dialgym.tasks.slot_filling.task import SlotFilling
from dialgym.tasks.slot_filling.tracker import BeliefTracker, Evidence, FocusTracker, Layout
from dialgym.tasks.slot_filling.types import (
    Accepted,
    SlotFillingBelief,
    SlotFillingState,
    Summary,
    TopValues,
)
from dialgym.tasks.slot_filling.understanding import BY_METHOD
from dialgym.tasks.state_batch import Generators, StateBatch

Beliefs = Sequence[SlotFillingBelief]


def _track(
    tracker: BeliefTracker, beliefs: Beliefs, systems: Sequence[Act], heard: Sequence[Hypotheses]
) -> None:
    """Update each belief; changes `beliefs`."""
    if type(tracker) is FocusTracker:
        update_many(tracker, beliefs, systems, heard)
        return
    for each in zip(beliefs, systems, heard):
        tracker.update(*each)


def update_many(
    tracker: FocusTracker, beliefs: Beliefs, systems: Sequence[Act], heard: Sequence[Hypotheses]
) -> None:
    """`FocusTracker.update` of each belief; changes `beliefs`."""
    evidence = [tracker.gather(*each) for each in zip(beliefs, systems, heard)]
    _shift(tracker.layout, beliefs, evidence)
    before = np.array([belief.methods for belief in beliefs])  # (k, 6)
    methods = _methods(before, np.array([each.methods for each in evidence]), tracker.faulty)
    discourse = np.array([each.discourse for each in evidence])  # (k, 7)
    for row, belief in enumerate(beliefs):
        belief.methods, belief.discourse = methods[row], discourse[row]


def _shift(layout: Layout, beliefs: Beliefs, evidence: Sequence[Evidence]) -> None:
    """Take in the values that were told, where any were."""
    moved = [(belief, each) for belief, each in zip(beliefs, evidence) if each.slots]
    if not moved:
        return
    goals = np.array([belief.goals for belief, _ in moved])  # (m, G)
    rows, slots, p = _triples([each.slots for _, each in moved])
    room = np.ones((len(moved), len(layout.slots)))
    room[rows, slots] = np.maximum(1.0 - p, 0.0)
    goals *= np.repeat(room, layout.sizes, axis=1)
    rows, entries, p = _triples([each.goals for _, each in moved])
    goals[rows, entries] += p
    goals[:, layout.nones] = 0.0
    left = 1.0 - np.add.reduceat(goals, layout.starts, axis=1)
    goals[:, layout.nones] = np.maximum(left, 0.0)
    for (belief, _), row in zip(moved, goals):
        belief.goals = row.copy()  # a view would keep the beliefs of all rows alive


def _triples(each: Sequence[dict[int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, key and value of the items of all rows."""
    rows = np.repeat(np.arange(len(each)), [len(row) for row in each])
    keys = np.array([key for row in each for key in row], np.int64)
    return rows, keys, np.array([p for row in each for p in row.values()], np.float64)


def _methods(before: np.ndarray, now: np.ndarray, faulty: bool) -> np.ndarray:
    """(k, 6): see `FocusTracker`."""
    none = BY_METHOD[NONE]
    methods: np.ndarray = before * np.minimum(now[:, none, None], 1.0) + now
    if faulty:
        methods[:, none] = before[:, none]
        return methods / np.maximum(methods.sum(1, keepdims=True), 1.0)
    methods[:, none] = 0.0
    methods[:, none] = np.maximum(1.0 - methods.sum(1), 0.0)
    return methods


class _Top(NamedTuple):
    """The two most believed values of each slot, as entries of the layout; all (k, S)."""

    first: np.ndarray
    first_p: np.ndarray
    second: np.ndarray
    second_p: np.ndarray
    none_p: np.ndarray


def _top(layout: Layout, goals: np.ndarray) -> _Top:
    """Of each slot the best values of k beliefs (k, G), of which few entries are not 0."""
    size, shape = len(layout.slots), (len(goals), len(layout.slots))
    none_p = goals[:, layout.nones]
    goals[:, layout.nones] = 0.0
    rows, places = np.nonzero(goals)
    p, cells = goals[rows, places], rows * size + layout.slot_of[places]
    order = np.lexsort((-p, cells))  # the sort is stable: among equals the first entry leads
    p, cells, places = p[order], cells[order], places[order]
    leads, follows = _ranked(cells)
    starts = np.tile(layout.starts, len(goals))
    first, first_p = _filled(starts, leads, cells, places, p)
    default = np.where(first == starts, np.tile(layout.seconds, len(goals)), starts)
    second, second_p = _filled(default, follows, cells, places, p)
    return _Top(
        first.reshape(shape), first_p.reshape(shape),
        second.reshape(shape), second_p.reshape(shape), none_p,
    )  # fmt: skip


def _ranked(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) bool each: what is first, and what is second, of those alike in sorted `cells`."""
    leads = np.ones(len(cells), bool)
    leads[1:] = cells[1:] != cells[:-1]
    follows = np.zeros(len(cells), bool)
    follows[1:] = leads[:-1] & ~leads[1:]
    return leads, follows


def _filled(
    default: np.ndarray, chosen: np.ndarray, cells: np.ndarray, places: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The default entries and 0, but for the `chosen`."""
    entries, believed = default.copy(), np.zeros(len(default))
    entries[cells[chosen]], believed[cells[chosen]] = places[chosen], p[chosen]
    return entries, believed


def summarise_many(summariser: Summariser, beliefs: Beliefs) -> list[Summary]:
    """`Summariser.summarise` of each belief."""
    top = _top(summariser.layout, np.array([belief.goals for belief in beliefs]))
    requested = np.array([belief.requested for belief in beliefs]) > summariser.limits.requested
    requestable = summariser.ontology.requestable
    rows = zip(
        _bests(summariser, top),
        _names(summariser.layout, top),
        np.array([belief.methods for belief in beliefs]).tolist(),
        np.array([belief.discourse for belief in beliefs]).tolist(),
        requested.tolist(),
    )
    return [
        Summary(
            best,
            accepted,
            name,
            name_p,
            summariser.method(methods),
            summariser.discourse(discourse),
            tuple(compress(requestable, asks)),
        )
        for (best, accepted), (name, name_p), methods, discourse, asks in rows
    ]


def _bests(
    summariser: Summariser, top: _Top
) -> Iterator[tuple[dict[str, TopValues], tuple[Accepted, ...]]]:
    """Of each belief the best values of the slots that can be asked for, and the accepted ones."""
    asked, texts = summariser.asked, summariser.layout.values
    numbers = [number for _, number, _ in summariser.thresholds]
    thresholds = np.array([threshold for _, _, threshold in summariser.thresholds])
    first, p, second, second_p, none_p = (array[:, numbers] for array in top)  # (k, n)
    accepted = (p >= none_p) & (p > thresholds)
    columns = (array.tolist() for array in (first, p, second, second_p, accepted))
    for places, firsts, others, seconds, good in zip(*columns):
        values = [texts[place] for place in places]
        best = map(TopValues, values, firsts, [texts[place] for place in others], seconds)
        told = [Accepted(*each) for each in compress(zip(asked, values, firsts), good)]
        yield dict(zip(asked, best)), tuple(told)


def _names(layout: Layout, top: _Top) -> list[tuple[str | None, float]]:
    """The most believed name of each belief, None for no name, and how much it is believed."""
    slot = layout.number[NAME]
    none_p = top.none_p[:, slot].tolist()
    places = zip(top.first[:, slot].tolist(), top.first_p[:, slot].tolist(), none_p)
    return [(layout.values[i], p) if p >= none else (None, none) for i, p, none in places]


def belief_vectors(
    summariser: Summariser, beliefs: Beliefs, summaries: Sequence[Summary]
) -> np.ndarray:
    """(k, belief_size) float32: `Summariser.vector` of each belief."""
    flags = [summariser.flags(*each) for each in zip(beliefs, summaries)]
    parts = (
        np.array([belief.goals for belief in beliefs]),
        np.array([belief.methods for belief in beliefs]),
        np.array([belief.discourse for belief in beliefs])[:, :-1],
        np.array([belief.requested for belief in beliefs]),
        np.array(flags),
    )
    return np.concatenate(parts, axis=1, dtype=np.float32)


def act_masks(acts: SummaryActs, beliefs: Beliefs, summaries: Sequence[Summary]) -> np.ndarray:
    """(k, 3n+7) bool: `SummaryActs.mask` of each belief."""
    if not any(acts.masks):
        return np.tile(acts.unmasked, (len(beliefs), 1))
    first = np.array([[best.p for best in s.best.values()] for s in summaries]) > 0  # (k, n)
    second = np.array([[best.second_p for best in s.best.values()] for s in summaries]) > 0
    asks = np.stack([np.ones_like(first), first, first & second], axis=2)
    others = np.array([acts.others(*each) for each in zip(beliefs, summaries)])
    parts = [asks.reshape(len(asks), -1), others]
    if acts.settings.confreq:
        parts.append(first.repeat(first.shape[1] - 1, axis=1))
    return np.concatenate(parts, axis=1) | acts.unmasked


class SlotFillingBatch(StateBatch):
    """`size` dialogues of a system with the simulated user; see `DialogueBatch` and `ActBatch`."""

    def __init__(self, task: SlotFilling, size: int) -> None:
        super().__init__(task, size, SYSTEM)
        self._beliefs = np.zeros((size, task.summariser.layout.vector_size), np.float32)
        self._stale = np.ones(size, bool)

    def begin(self, rows: np.ndarray, drawn: list[Any], rngs: Generators) -> BatchOutcome:
        self._put(rows, drawn)
        return self._answer(rows, [_QUIET] * len(rows), rngs)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        said = zip(rows.tolist(), texts.tolist())
        outcomes = [self.task.speak(self._states[row], text, rngs[row]) for row, text in said]
        self._note_said(rows)
        return self._answer(rows, outcomes, rngs)

    def _answer(self, rows: np.ndarray, said: list[Outcome], rngs: Generators) -> BatchOutcome:
        """Let the users answer where the system has not ended the dialogue."""
        going = [row for row, outcome in zip(rows.tolist(), said) if not outcome.terminated]
        answers = self._users_say(going, rngs) if going else {}
        self._stale[rows] = True
        return self._gather(rows, said, answers)

    def _users_say(self, rows: list[int], rngs: Generators) -> dict[int, Outcome]:
        """Outcomes of the answers, by row."""
        task, states = self.task, [self._states[row] for row in rows]
        pairs = zip(rows, states)
        told = [task.user_says(state, state.planned[0], rngs[row]) for row, state in pairs]
        beliefs = [state.belief for state in states]
        acts, heard = [act for act, _ in told], [heard for _, heard in told]
        _track(task.tracker, beliefs, [s.system_act for s in states], heard)
        for state, summary in zip(states, summarise_many(task.summariser, beliefs)):
            state.summary = summary
        ends = map(task.conclude, states, acts)
        return dict(zip(rows, ends))

    def restore(self, row: int, state: SlotFillingState, turn: int) -> None:
        super().restore(row, state, turn)
        self._stale[row] = True

    def observations(self) -> np.ndarray:
        """(N, belief_size) float32, a copy: the belief of the system of each row."""
        rows = np.flatnonzero(self._stale)
        if len(rows):
            self._beliefs[rows] = belief_vectors(self.task.summariser, *self._of(rows))
            self._stale[rows] = False
        return self._beliefs.copy()

    def act_masks(self) -> np.ndarray:
        """(N, 3n+7) bool: `SummaryActs.mask` of each row."""
        return act_masks(self.task.summary_acts, *self._of(np.arange(len(self._states))))

    def _of(self, rows: np.ndarray) -> tuple[list[SlotFillingBelief], list[Summary]]:
        states = self.states(rows)
        return [state.belief for state in states], [state.summary for state in states]


_QUIET = Outcome.of({SYSTEM: {}})
"""A dialogue that has just begun."""
