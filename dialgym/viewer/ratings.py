"""Ratings of replies: their files, which the trainer of reward models reads, and their queue.

``preferences.jsonl`` has a line for each comparison (``context``, ``chosen``, ``rejected``),
``scores.jsonl`` one for each reply that was given a number (``context``, ``reply``, ``score``),
``ties.jsonl`` the comparisons that nobody won, ``successes.jsonl`` one for each dialogue of which
somebody has said if the user was served (``context``, ``reply``, ``score`` of 1 or 0). A file is
written again at each rating, whole or not at all, so that a kill loses no more than the rating in
flight; files that are there are continued.
"""

import io
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dialgym.errors import whole_number
from dialgym.io.files import parse_json, write_text
from dialgym.io.locks import PATIENCE, locked
from dialgym.viewer.listing import Listing
from dialgym.viewer.pairs import Comparison, Parting
from dialgym.viewer.query import NotHereError

PREFERENCES, SCORES, TIES, SUCCESSES = "preferences", "scores", "ties", "successes"
KINDS = (PREFERENCES, SCORES, TIES, SUCCESSES)
NEEDED = {
    PREFERENCES: ("key", "context", "chosen", "rejected"),
    SCORES: ("key", "context", "reply", "score"),
    TIES: ("key", "context", "replies"),
    SUCCESSES: ("key", "context", "reply", "score"),
}
LOWEST, HIGHEST = 1, 5


class Ratings:
    """Ratings in a folder, by the key of the rated reply; a second rating replaces the first.

    Several viewers may write into one folder.

    Args:
        folder: where the files lie, or will.

    Raises:
        ValueError: a file there is of another kind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mutex = threading.Lock()  # a file's lock is one of processes
        for kind in KINDS:
            self.read(kind)

    def file(self, kind: str) -> Path:
        """File of the ratings of a kind."""
        return self.folder / f"{kind}.jsonl"

    def read(self, kind: str) -> dict[str, dict[str, Any]]:
        """The ratings of a kind by key."""
        file = self.file(kind)
        if not file.is_file():
            return {}
        rows = _rows(file, NEEDED[kind])
        return {str(row["key"]): row for row in rows}

    def put(self, kind: str, row: Mapping[str, Any]) -> None:
        """Add a rating; what was compared has one verdict, a preference or a tie.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._mutex, locked(self.folder, PATIENCE):
            if kind in (PREFERENCES, TIES):
                self._drop(TIES if kind == PREFERENCES else PREFERENCES, str(row["key"]))
            self._write(kind, {**self.read(kind), str(row["key"]): dict(row)})

    def remove(self, key: str) -> bool:
        """Remove a rating; return True if there was one."""
        if not self.folder.is_dir():
            return False
        with self._mutex, locked(self.folder, PATIENCE):
            removed = [self._drop(kind, key) for kind in KINDS]
        return True in removed

    def counts(self) -> dict[str, Any]:
        """Number of ratings of each kind, with their files."""
        return {**{kind: len(self.read(kind)) for kind in KINDS}, "folder": str(self.folder)}

    def _drop(self, kind: str, key: str) -> bool:
        rows = self.read(kind)
        if key not in rows:
            return False
        del rows[key]
        self._write(kind, rows)
        return True

    def _write(self, kind: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
        write_text(self.file(kind), "".join(f"{json.dumps(row)}\n" for row in rows.values()))


def _rows(file: Path, needed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    lines = io.StringIO(file.read_text("utf-8"))  # texts may hold other ends of lines (U+2028)
    for number, line in enumerate(lines, 1):
        where = f"{str(file)!r}, line {number}"
        row = parse_json(line, where)
        missing = [name for name in needed if not isinstance(row, dict) or name not in row]
        if missing:
            raise ValueError(
                f"{where}: expected a rating of the viewer with {', '.join(needed)}; it lacks "
                f"{', '.join(missing)}. Give another folder (--ratings)."
            )
        yield row


def success_row(
    texts: Sequence[str],
    served: bool,
    env: str = "",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """A row of `SUCCESSES`: if the user was served in a whole dialogue, by who was in it.

    Args:
        texts: all that was said, not empty; the last is the reply of the row, the others its
            context, as a reward model reads them.
        served: the verdict.
        env, settings, seed: of the dialogue, if it was played in an environment.
    """
    made = json.dumps(dict(settings or {}), default=repr)
    origin = _origin({"env": env, "settings": made, "seed": seed})
    row = {"context": list(texts[:-1]), "reply": texts[-1], "score": int(served)}
    return {**row, "key": _digest("success", env, made, *texts), **origin}


class Rater:
    """Takes ratings of replies.

    Args:
        ratings: where they are kept.
    """

    def __init__(self, ratings: Ratings) -> None:
        self.ratings = ratings

    def scores(self, listing: Listing, row: int) -> dict[int, float]:
        """The scores that the replies of a dialogue have, by place."""
        given = self.ratings.read(SCORES)
        stored = listing.dataset[row]
        keys = {i: _key_of_turn(stored, i) for i, t in enumerate(stored["turns"]) if t["said"]}
        return {turn: given[key]["score"] for turn, key in keys.items() if key in given}

    def score(self, listing: Listing, row: int, turn_index: int, score: int | None) -> None:
        """Give a reply a number, or take its number back.

        Raises:
            NotHereError: there is no such reply.
            ValueError: the number is not from 1 to 5.
        """
        stored = listing.select(row)[0]
        if not 0 <= turn_index < len(stored["turns"]) or not stored["turns"][turn_index]["said"]:
            raise NotHereError(f"turn {turn_index} of dialogue {row} is no reply of the learner's.")
        key = _key_of_turn(stored, turn_index)
        if score is None:
            self.ratings.remove(key)
            return
        whole_number("score", score, "a reply", LOWEST, HIGHEST)
        texts = [turn["text"] for turn in stored["turns"]]
        row_ = {"context": texts[:turn_index], "reply": texts[turn_index], "score": score}
        about = {"key": key, "policy": stored["policy"], "turn": turn_index, **_origin(stored)}
        self.ratings.put(SCORES, {**row_, **about})

    def next(self, comparison: Comparison) -> dict[str, Any]:
        """The next pair without a verdict, and counts; names of policies are hidden.

        The key decides which policy is on the left, so that it stays the same.
        """
        rated = {**self.ratings.read(PREFERENCES), **self.ratings.read(TIES)}
        open_pair: dict[str, Any] | None = None
        seen: set[str] = set()
        for number, parted in enumerate(comparison.partings):
            if parted is None:
                continue
            key = _key_of_pair(comparison, number, parted)
            seen.add(key)  # the same two replies in the same situation are one comparison
            if open_pair is None and key not in rated:
                replies = parted.replies[::-1] if _swapped(key) else parted.replies
                open_pair = {"number": number, "key": key, "replies": list(replies)}
                open_pair["turns"] = self._context(comparison, number, parted)
        done = len(seen & rated.keys())
        return {"next": open_pair, "total": len(seen), "done": done, **self.ratings.counts()}

    def prefer(self, comparison: Comparison, number: int, verdict: str) -> dict[str, Any]:
        """Write down which reply of a pair is better; return the names of the policies.

        Args:
            comparison: of the pair.
            number: of the pair.
            verdict: ``left``, ``right`` or ``tie``.

        Raises:
            NotHereError: there is no such pair, or its dialogues do not part.
        """
        comparison.dialogues(number)
        parted = comparison.partings[number]
        if parted is None:
            raise NotHereError(f"the dialogues of pair {number} have no replies to compare.")
        key = _key_of_pair(comparison, number, parted)
        names = [side.name for side in comparison.sides]
        first = comparison.sides[0].listing.dataset[comparison.pairs[number][0]]
        row: dict[str, Any] = {"key": key, "context": list(parted.context), **_origin(first)}
        if verdict == "tie":
            row |= {"replies": list(parted.replies), "policies": names}
            self.ratings.put(TIES, row)
        else:
            better = int((verdict == "right") != _swapped(key))
            row |= {"chosen": parted.replies[better], "rejected": parted.replies[1 - better]}
            row |= {"policies": [names[better], names[1 - better]]}
            self.ratings.put(PREFERENCES, row)
        shown = names[::-1] if _swapped(key) else names
        return {"left": shown[0], "right": shown[1], "key": key, **self.ratings.counts()}

    def _context(
        self, comparison: Comparison, number: int, parted: Parting
    ) -> list[dict[str, Any]]:
        listing, row = comparison.sides[0].listing, comparison.pairs[number][0]
        turns: list[dict[str, Any]] = listing.dialogue(row)["turns"]
        return turns[: parted.turn]


def _origin(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Origin of a rated reply, and the time of the rating."""
    return {
        "env": stored["env"],
        "settings": stored["settings"],
        "seed": int(stored["seed"]),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _key_of_turn(stored: Mapping[str, Any], index: int) -> str:
    texts = [turn["text"] for turn in stored["turns"][: index + 1]]
    return _digest("score", stored["env"], stored["settings"], *texts)


def _key_of_pair(comparison: Comparison, number: int, parted: Parting) -> str:
    """Key of a pair, which does not depend on the order of the policies or on their views."""
    pair = comparison.pairs[number]
    stored = comparison.sides[0].listing.dataset[pair[0]]
    views = (side.listing.columns["env"][row] for side, row in zip(comparison.sides, pair))
    replies = sorted(parted.replies)
    return _digest("pair", min(views), stored["settings"], *parted.context, "", *replies)


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _swapped(key: str) -> bool:
    return bool(int(key, 16) & 1)
