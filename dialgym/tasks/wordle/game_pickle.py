"""The games that ILQL's scripts store, pickles of states and guesses: read without running them."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.io.files import read_file
from dialgym.io.inert_pickle import load_inert
from dialgym.tasks.wordle.patterns import LENGTH

LETTERS = 26
KNOWLEDGE = {"NOT_HERE": 0, "POSSIBLE": 1, "HERE": 2}
NOT_HERE, POSSIBLE, HERE = KNOWLEDGE.values()
MODULE = "wordle.wordle_game"


class StoredGame(NamedTuple):
    """A game as it is stored.

    Attributes:
        known: (26, 5) int8, what its last state says of each letter at each place.
        guesses: in their order.
        kind: what the script calls it, empty where it does not.
    """

    known: np.ndarray
    guesses: tuple[str, ...]
    kind: str

    def allows(self, letters: np.ndarray) -> np.ndarray:
        """Tell which words agree with the last state, by ILQL's rule.

        Args:
            letters: (A, 5) of the words, from 0 to 25.

        Returns:
            (A,) bool.
        """
        found = np.ones(len(letters), bool)
        for letter in np.flatnonzero((self.known != POSSIBLE).any(1)).tolist():
            places, row = letters == letter, self.known[letter]
            if (row == NOT_HERE).all():
                found &= ~places.any(1)
            else:
                found &= places[:, row == HERE].all(1) & ~places[:, row == NOT_HERE].any(1)
                found &= places.any(1)
        return found


def read_game_pickle(path: Any) -> list[StoredGame]:
    """The games of a file ``{"state_actions": [{"state", "actions", "meta"}, ...], ...}``.

    Raises:
        ValueError: it is none, or holds anything but such games.
    """
    where = f"games of Wordle in {str(path)!r}"
    try:
        content = load_inert(read_file(Path(str(path)).expanduser()), _STANDINS, "games")
        rows = content["state_actions"]
        if not isinstance(rows, list) or not rows:
            raise pickle.UnpicklingError(f"its state_actions are {type(rows).__name__}")
        return [_game(row) for row in rows]
    except OSError as error:
        raise ValueError(f"{where}: expected a file ({error}). Check the path.") from error
    except Exception as error:  # a broken pickle raises whatever its bytes happen to mean
        raise ValueError(
            f"{where}: expected the pickle of ILQL's scripts, a dictionary with state_actions "
            f"({type(error).__name__}: {error})."
        ) from error


def _game(row: Mapping[str, Any]) -> StoredGame:
    state, actions = row["state"], row["actions"]
    if not isinstance(state, _State) or not all(isinstance(text, str) for text in actions):
        raise pickle.UnpicklingError("a game is not of a state and actions")
    kind = (row.get("meta") or {}).get("kind", "")
    known = np.frombuffer(state.known, np.int8).reshape(LETTERS, LENGTH)
    return StoredGame(known, tuple(actions), kind if isinstance(kind, str) else "")


class _Letter:
    """Stands in for `CharState`: what is known of a letter at each place."""

    __slots__ = ("known",)
    known: bytes

    def __setstate__(self, state: Any) -> None:
        places = state["position_knowledge"]
        if len(places) != LENGTH:
            raise pickle.UnpicklingError(f"a letter has {len(places)} places")
        self.known = bytes(places)


class _State:
    """Stands in for `WordleState`: its letters' places in one row."""

    __slots__ = ("known",)
    known: bytes

    def __setstate__(self, state: Any) -> None:
        letters = state["state"]
        if len(letters) != LETTERS or not all(isinstance(one, _Letter) for one in letters):
            raise pickle.UnpicklingError(f"a state has {len(letters)} letters")
        self.known = b"".join([letter.known for letter in letters])


def _knowledge(value: Any) -> int:
    """Stand in for `CharKnowledge`, a number by its value."""
    if value not in (NOT_HERE, POSSIBLE, HERE):
        raise pickle.UnpicklingError(f"knowledge of a letter is not {NOT_HERE} to {HERE}")
    return int(value)


def _member(kind: Any, name: Any) -> int:
    """Stand in for `getattr`, by which some Pythons name the members of `CharKnowledge`."""
    if kind is not _knowledge:
        raise pickle.UnpicklingError("it holds an attribute, and only games are read")
    return KNOWLEDGE[name]


_STANDINS = {
    (MODULE, "WordleState"): _State,
    (MODULE, "CharState"): _Letter,
    (MODULE, "CharKnowledge"): _knowledge,
    ("builtins", "getattr"): _member,
}
