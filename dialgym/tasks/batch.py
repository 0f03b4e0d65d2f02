"""Many dialogues of a task at once: their protocol, and exchanges gathered as arrays."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.rewards import Components


class BatchOutcome(NamedTuple):
    """The results of k utterances, one in each of k dialogues.

    What the learners hear then is a flat list: `heard_texts[j]` by the party of index
    `heard_parties[j]` in the dialogue `rows[heard_rows[j]]`, in order.
    """

    reward: np.ndarray  # (k,) float64, the learner's
    terminated: np.ndarray  # (k,) bool
    truncated: np.ndarray  # (k,) bool
    success: np.ndarray  # (k,) bool, False while open
    components: Mapping[str, np.ndarray]  # the learner's, (k,) float64, 0 where a row has none
    heard_texts: np.ndarray  # (m,) <U
    heard_parties: np.ndarray  # (m,) int64, into Task.voices
    heard_rows: np.ndarray  # (m,) int64, into the k rows


class DialogueBatch(Protocol):
    """Many dialogues of one task at once, the learner's side; rows are independent."""

    def draw(
        self, rows: np.ndarray, rngs: Sequence[np.random.Generator], options: Mapping[str, Any]
    ) -> Any:
        """Draw what `rows` begin with; `rngs` is the list of all rows' generators.

        No dialogue changes, so that options may be refused here.
        """
        ...

    def begin(
        self, rows: np.ndarray, drawn: Any, rngs: Sequence[np.random.Generator]
    ) -> BatchOutcome:
        """Begin `rows` again with what was drawn for them. Rewards are 0."""
        ...

    def say(
        self, rows: np.ndarray, texts: np.ndarray, rngs: Sequence[np.random.Generator]
    ) -> BatchOutcome:
        """Let the learner of each of the `rows` say `texts` (k,) of dtype ``<U``."""
        ...

    def transcript(self, row: int) -> Sequence[Utterance]:
        """The transcript of a row's learner."""
        ...

    def constraint(self, row: int) -> Constraint:
        """Constraint of the learner of a row."""
        ...

    def states(self, rows: np.ndarray) -> Sequence[Any]:
        """The dialogues of the rows (k,), to be read; each may be made when it is asked for."""
        ...

    def turn(self, rows: np.ndarray) -> np.ndarray:
        """(k,) utterances of the learner so far."""
        ...

    def restore(self, row: int, state: Any, turn: int) -> None:
        """Let a row go on from a state of the task, in which the learner has heard everything."""
        ...


class RowStates(Sequence[Any]):
    """Rows of a batch as states, each made when it is asked for; it stands for nothing else.

    Args:
        batch: of the task `task`, with `state(row)`, which makes a row's dialogue again.
        rows: (k,) which.
        party: who plays it is shown what the party may know; None for all there is.
    """

    def __init__(self, batch: Any, rows: np.ndarray, party: str | None = None) -> None:
        self._batch, self._rows, self._party = batch, rows, party

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return type(self)(self._batch, self._rows[place], self._party)
        state = self._batch.state(int(self._rows[place]))
        return self._batch.task.observed(state, self._party) if self._party else state

    def observed(self, party: str) -> Self:
        """The same dialogues for who plays `party`; see `Task.observed`."""
        return type(self)(self._batch, self._rows, party)


class Exchange(NamedTuple):
    """Outcome of one utterance of the learner, up to its next turn.

    Reward and components are the learner's, summed over the utterances of both parties.
    """

    reward: float
    terminated: bool
    truncated: bool
    heard: Sequence[Utterance]
    components: Components
    success: bool | None

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated


def add(first: Components, second: Components) -> Components:
    """The components of two utterances, summed by name."""
    total = dict(first)
    for name, value in second.items():
        total[name] = total.get(name, 0.0) + value
    return total


def silence(count: int) -> BatchOutcome:
    """The outcome of `count` dialogues that begin without a word."""
    none, nothing = np.zeros(count, bool), np.zeros(0, np.int64)
    return BatchOutcome(np.zeros(count), none, none, none, {}, np.zeros(0, "<U1"), nothing, nothing)


def gather(exchanges: Sequence[Exchange], voices: Sequence[str]) -> BatchOutcome:
    """The exchanges of k dialogues as arrays; `voices` are those of the task."""
    heard = [(row, line) for row, e in enumerate(exchanges) for line in e.heard]
    return BatchOutcome(
        np.array([e.reward for e in exchanges], np.float64),
        np.array([e.terminated for e in exchanges], bool),
        np.array([e.truncated for e in exchanges], bool),
        np.array([bool(e.success) for e in exchanges], bool),
        _columns([e.components for e in exchanges]),
        np.array([line.text for _, line in heard], np.str_),
        np.array([voices.index(line.speaker) for _, line in heard], np.int64),
        np.array([row for row, _ in heard], np.int64),
    )


def _columns(components: Sequence[Components]) -> dict[str, np.ndarray]:
    """Each component over all rows, 0 in a row that does not have it."""
    names = dict.fromkeys(name for row in components for name in row)
    return {name: np.array([row.get(name, 0.0) for row in components]) for name in names}
