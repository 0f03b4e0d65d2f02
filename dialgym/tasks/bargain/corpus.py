"""Negotiations of people under the rules: their contexts, their dialogues, what is understood."""

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.errors import one_of
from dialgym.io.tables import fingerprint, locate
from dialgym.tasks.bargain.games import CHEAPEST, DEAREST, Game, Numbers
from dialgym.tasks.bargain.negotiations import (
    ACCEPTED,
    LEFT,
    PROPOSED,
    REJECTED,
    Negotiation,
    read_negotiations,
)
from dialgym.tasks.bargain.types import ACCEPT, ASK, LEAVE, NONE, REJECT, BargainState
from dialgym.tasks.generators import Log
from dialgym.tasks.splits import SPLITS

BARGAIN = "DIALGYM_BARGAIN"
"""The environment variable that names the folder of the corpora."""
PATTERNS = ("*.txt", "*.json", "*.zip")
BUTTONS = {ACCEPTED: ACCEPT, REJECTED: REJECT, LEFT: LEAVE}


def data_named(data: Any) -> Any:
    """The data that a setting names; where it names none, what ``$DIALGYM_BARGAIN`` does.

    Raises:
        ValueError: nothing names any.
    """
    named = data if data is not None else os.environ.get(BARGAIN)
    if not named:
        raise ValueError(
            f"data of Bargain: expected the folder of the negotiations of people, as a setting or "
            f"as ${BARGAIN}; got neither. Name one, or play generated contexts."
        )
    return named


def place_of(data: Any) -> Path:
    """The folder or file of the negotiations of people; see `data_named`."""
    return locate(data_named(data), "Bargain", patterns=PATTERNS)


def load_negotiations(data: Any, game: Game) -> Sequence[Negotiation]:
    """The negotiations over a game whose contexts and deals are possible in it.

    Raises:
        ValueError: there are none, or a file is damaged.
    """
    place = place_of(data)
    return _load(place, game, fingerprint(place))


@lru_cache(maxsize=6)
def _load(place: Path, game: Game, stamp: str) -> Sequence[Negotiation]:
    met = set(map(tuple, game.scenarios.tolist()))
    found = [
        one
        for one in read_negotiations(place, game.name)
        if context(game, one) in met and (not one.deal or outcome(game, one.deal) != NONE)
    ]
    if not found:
        raise ValueError(
            f"data {str(place)!r}: expected negotiations of people over {game.name}; there are "
            "none. Give the folder of Deal or No Deal (items), CaSiNo (goods) or Craigslist "
            "(price)."
        )
    return tuple(found)


def of_split(data: Any, game: Game, split: str | None) -> list[Negotiation]:
    """Those of a split; None for all.

    Raises:
        ValueError: there is no such split, or nothing in it.
    """
    one_of("split", split, (*SPLITS, None), "Bargain")
    every = load_negotiations(data, game)
    found = [one for one in every if split in (None, one.split)]
    if not found:
        splits = ", ".join(sorted({one.split for one in every}))
        raise ValueError(
            f"data {str(data_named(data))!r}: expected negotiations over {game.name} of the split "
            f"{split!r}; it has {splits} alone."
        )
    return found


def contexts_of(data: Any, game: Game, split: str | None) -> np.ndarray:
    """(n, 2) int64: rows of the profiles of system and user, of each negotiation of a split."""
    return np.array([context(game, one) for one in of_split(data, game, split)], np.int64)


def options_by_split(data: Any, game: Game) -> dict[str, list[dict[str, Any]]]:
    """Options of reset that give each negotiation's context, by split."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in load_negotiations(data, game):
        found.setdefault(one.split, []).append(options_of(one))
    return found


def options_of(one: Negotiation) -> dict[str, Any]:
    """Options of reset that give its context."""
    system, user = (list(values) for values in one.values)
    return {"table": list(one.table), "system": system, "user": user}


def context(game: Game, one: Negotiation) -> tuple[int, int]:
    """Rows of the profiles of system and user; NONE for what the game has not."""
    system, user = (
        known.get((one.table, values), NONE) for known, values in zip(game.rows, one.values)
    )
    return system, user


def outcome(game: Game, deal: Numbers) -> int:
    """The outcome of a deal, NONE for none or one beyond what can be proposed."""
    if not deal:
        return NONE
    if len(deal) == 1:
        return deal[0] - CHEAPEST if CHEAPEST <= deal[0] <= DEAREST else NONE
    code: int = game.code(deal)  # type: ignore[attr-defined]
    return code


class BargainCorpus:
    """Negotiations of people, held again: what they agreed on is what the dialogue ends with.

    Utterances are taken for acts by the rules of the task. One that would make another deal than
    they made, or leave while they went on, counts as not understood; of these, a pair in a row is
    left out, and a single one is a question. Where nobody has said the deal in words that are
    understood, it is proposed and accepted at the end, as people did by a form. Who did not agree
    leaves. Dialogues longer than the limit of turns are left out.

    Args:
        split: ``train``, ``validation`` or ``test``; None for all.
        words: keep people's words, as far as they are taken for the acts; else the acts' texts.

    Raises:
        ValueError: there is no such split, or no data.
    """

    def __init__(self, split: str | None = "train", words: bool = False) -> None:
        self.split, self.words = split, words
        self._known: tuple[Any, list[Log]] = (None, [])

    def count(self, task: Any) -> int:
        """See `dialgym.tasks.generators.Logs`."""
        return len(self._logs(task))

    def log(self, task: Any, number: int) -> Log:
        """See `dialgym.tasks.generators.Logs`."""
        return self._logs(task)[number]

    def _logs(self, task: Any) -> list[Log]:
        if self._known[0] is not task:
            found = [self._log(task, one) for one in of_split(task.data, task.game, self.split)]
            self._known = task, [log for log in found if len(log.turns) <= 2 * task.turns]
        return self._known[1]

    def _log(self, task: Any, one: Negotiation) -> Log:
        said = held_again(task, one)
        if not self.words:
            said = without_pairs(said)
        table, state = task.game.tables.index(one.table), BargainState(*context(task.game, one))
        turns = []
        for party, (code, text) in zip(cycle(task.parties), said):
            kept = self.words and text[:1] != "[" and task.read(state, text) == code
            if not kept and code == NONE:
                code = task.game.size + ASK
            turns.append((party, text if kept else task.texts[table][code]))
            state = after(task, state, code)
        return Log(options_of(one), turns, "agreed" if one.deal else "apart")


def held_again(task: Any, one: Negotiation) -> list[tuple[int, str]]:
    """The acts of a negotiation with their texts, from the first to the end; NONE: not understood.

    There are as many as it takes, whatever the limit of turns.
    """
    game, deal = task.game, outcome(task.game, one.deal)
    state = BargainState(*context(game, one))
    said: list[tuple[int, str]] = []
    for place, text in enumerate(one.turns, 1):
        code = act_of(task, state, text)
        then = after(task, state, code)
        if then.over and (then.deal != deal or (deal == NONE and place < len(one.turns))):
            code, then = NONE, after(task, state, NONE)
        said.append((code, text))
        state = then
        if state.over:
            return said
    while not state.over:
        party = int(state.waiting)
        if deal == NONE:
            code = game.size + LEAVE
        elif state.open == deal and state.owner == 1 - party:
            code = game.size + ACCEPT
        else:
            code = game.outcome[party][task.table(state, party)].tolist().index(deal)
        said.append((code, ""))
        state = after(task, state, code)
    return said


def after(task: Any, state: BargainState, code: int) -> BargainState:
    """The state after an act, in a dialogue without a limit of turns."""
    then = state.copy()
    then.turns = -1
    task.apply(then, code)
    return then


def act_of(task: Any, state: BargainState, text: str) -> int:
    """The act that a line is taken for: a button's, or that of the words."""
    party, game = int(state.waiting), task.game
    if text in BUTTONS:
        return int(game.size + BUTTONS[text])
    if not text.startswith(PROPOSED):
        return int(task.read(state, text))
    numbers = [int(n) for n in text.removeprefix(PROPOSED).split()]
    if len(numbers) == 1:
        return int(
            task.understanding.read(task.table(state, party), f"i offer {numbers[0]} dollars")
        )
    return int(game.code(numbers))


def without_pairs(said: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The acts without pairs in a row, both not understood."""
    kept: list[tuple[int, str]] = []
    for one in said:
        if kept and kept[-1][0] == NONE == one[0]:
            kept.pop()
        else:
            kept.append(one)
    return kept
