"""What there is to rate, and how a rating is written down."""

import time
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from dialgym.errors import whole_number
from dialgym.viewer.asked import NotHereError
from dialgym.viewer.listing import Listing
from dialgym.viewer.pairs import Comparison, Parting
from dialgym.viewer.ratings import HIGHEST, LOWEST, PREFERENCES, SCORES, TIES, Ratings


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
        return {place: given[key]["score"] for place, key in keys.items() if key in given}

    def score(self, listing: Listing, row: int, place: int, score: int | None) -> None:
        """Give a reply a number, or take its number back.

        Raises:
            NotHereError: there is no such reply.
            ValueError: the number is not from 1 to 5.
        """
        stored = listing.one(row)[0]
        if not 0 <= place < len(stored["turns"]) or not stored["turns"][place]["said"]:
            raise NotHereError(f"turn {place} of dialogue {row} is no reply of the learner's.")
        key = _key_of_turn(stored, place)
        if score is None:
            self.ratings.remove(key)
            return
        whole_number("score", score, "a reply", LOWEST, HIGHEST)
        texts = [turn["text"] for turn in stored["turns"]]
        row_ = {"context": texts[:place], "reply": texts[place], "score": score}
        about = {"key": key, "policy": stored["policy"], "turn": place, **_origin(stored)}
        self.ratings.put(SCORES, {**row_, **about})

    def next(self, comparison: Comparison) -> dict[str, Any]:
        """The next pair that has no verdict yet, and how many there are; names are not told.

        Which policy stands on the left is drawn by the key, so that it is the same once more.
        """
        rated = {**self.ratings.read(PREFERENCES), **self.ratings.read(TIES)}
        found: dict[str, Any] | None = None
        seen: set[str] = set()
        for number, parted in enumerate(comparison.partings):
            if parted is None:
                continue
            key = _key_of_pair(comparison, number, parted)
            seen.add(key)  # the same two replies in the same situation are one comparison
            if found is None and key not in rated:
                replies = parted.replies[::-1] if _swapped(key) else parted.replies
                found = {"number": number, "key": key, "replies": list(replies)}
                found["turns"] = self._context(comparison, number, parted)
        done = len(seen & rated.keys())
        return {"next": found, "total": len(seen), "done": done, **self.ratings.counts()}

    def prefer(self, comparison: Comparison, number: int, verdict: str) -> dict[str, Any]:
        """Write down which reply of a pair is better; what the page tells of it.

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
        return turns[: parted.place]


def _origin(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What a rating says of where the reply was given, and when it was rated."""
    return {
        "env": stored["env"],
        "settings": stored["settings"],
        "seed": int(stored["seed"]),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _key_of_turn(stored: Mapping[str, Any], place: int) -> str:
    texts = [turn["text"] for turn in stored["turns"][: place + 1]]
    return _digest("score", stored["env"], stored["settings"], *texts)


def _key_of_pair(comparison: Comparison, number: int, parted: Parting) -> str:
    """The same whichever policy is the first."""
    stored = comparison.sides[0].listing.dataset[comparison.pairs[number][0]]
    replies = sorted(parted.replies)
    return _digest("pair", stored["env"], stored["settings"], *parted.context, "", *replies)


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _swapped(key: str) -> bool:
    return bool(int(key, 16) & 1)
