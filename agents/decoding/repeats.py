"""Greedy decoding that does not say an utterance again where the policy has an alternative.

A policy that learned by drawing can ask the same again, greedily, until the other party hangs up:
what would have led it out, chance, is gone. Only whole utterances count as repeats, since different
ones may begin alike. So where the likeliest token leads along an earlier utterance, the policy is
asked what it would say next: it either leaves that utterance on its own, or the best place to leave
it is looked for, here or further on. Each token is decided from the window alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.models.observations import Observed
from dialgym.errors import finite_number
from dialgym.language.tokenizers import END, TAGS

LEAST = 0.05
"""Default probability that an alternative must have."""
MOST = 8
"""Most alternatives to one repeat that are tried."""

Ahead = Callable[[Observed], Tensor]
"""From observations of b rows to the probabilities (b, V) of their next tokens."""


def unrepeated(
    probabilities: Tensor, seen: Observed, tag: int, least: float | None, ahead: Ahead
) -> Tensor:
    """The next tokens (B,) int64 of greedy decoding without whole repeats.

    It is the likeliest token, unless greedy decoding would say an earlier utterance of the same
    speaker again, to its end, and the likeliest alternative to any of its tokens from here on
    stands at this place. An alternative has a probability of at least `least`, and does not lead
    greedily into another repeat. Without any, the repeat is said.

    Args:
        probabilities: (B, V) of the next tokens, forbidden ones at 0.
        seen: the observations of all B rows.
        tag: the token that begins each utterance of the speaker.
        least: probability that an alternative must have; None for the likeliest tokens always.
        ahead: gives the probabilities after longer observations. It is asked only where the
            likeliest token leads along an earlier utterance and an alternative is likely enough.
    """
    chosen = probabilities.argmax(1)
    if least is None:
        return chosen
    rows = leading_along(seen.tokens.numpy(), seen.lengths, tag, chosen.cpu().numpy())
    if len(rows):
        second = probabilities[torch.from_numpy(rows).to(chosen.device)].topk(2).values[:, 1]
        rows = rows[(second >= least).cpu().numpy()]
    if len(rows):
        search = _Search(seen, rows, tag, ahead)
        for row, token in search.departures(probabilities, chosen, least).items():
            chosen[row] = token
    return chosen


def leading_along(
    tokens: np.ndarray, lengths: np.ndarray, tag: int, following: np.ndarray
) -> np.ndarray:
    """Rows (b,) in which an earlier utterance begins as the one under way and the next token do.

    Args:
        tokens: (B, L), padded at the right.
        lengths: (B,) of the windows.
        tag: the token that begins each utterance of the speaker.
        following: (B,) the next tokens.
    """
    is_tag = tokens == tag
    starts = tokens.shape[1] - 1 - is_tag[:, ::-1].argmax(1)  # the last tag of each row
    rows, places = np.nonzero(is_tag)
    rows, places = rows[earlier := places < starts[rows]], places[earlier]
    said = lengths - starts - 1
    for step in range(int(said[rows].max(initial=-1)) + 1):
        at = np.minimum(starts[rows] + 1 + step, tokens.shape[1] - 1)
        wanted = np.where(step < said[rows], tokens[rows, at], following[rows])
        found = tokens[rows, np.minimum(places + 1 + step, tokens.shape[1] - 1)]
        alike = (found == wanted) | (step > said[rows])
        rows, places = rows[alike], places[alike]
    return np.unique(rows)


class Earlier:
    """Earlier utterances of the speaker whose turn it is at the end of a window.

    Each is the rest that would have to follow now to say it again: a tuple of tokens, up to <end>
    where it has one.

    Args:
        window: (n,) tokens.
        tag: the token that begins each utterance of the speaker.
    """

    def __init__(self, window: np.ndarray, tag: int) -> None:
        *starts, last = np.flatnonzero(window == tag).tolist()
        under_way = window[last + 1 :].tolist()
        utterances = [_first_utterance(window[start + 1 :].tolist()) for start in starts]
        count = len(under_way)
        self.whole = {tuple(u[count:]) for u in utterances if u[:count] == under_way}
        self.begun = {rest[:end] for rest in self.whole for end in range(len(rest))}

    def leads_on(self, path: Sequence[int]) -> bool:
        """Return True if `path` is the beginning of a repeat, and not all of one."""
        return tuple(path) in self.begun and not self.repeats(path)

    def repeats(self, path: Sequence[int]) -> bool:
        """Return True if `path` makes the utterance a whole repeat."""
        return tuple(path) in self.whole


def _first_utterance(tokens: list[int]) -> list[int]:
    """The tokens up to <end> or before the next tag."""
    for place, token in enumerate(tokens):
        if token == END:
            return tokens[: place + 1]
        if token in TAGS.values():
            return tokens[:place]
    return tokens


class _Alternative(NamedTuple):
    """Another token than that of a repeat."""

    probability: float
    path: list[int]  # what follows the window, the token last


class _Search:
    """Search for the places at which some rows leave what they would say again.

    Args:
        seen: the observations of all B rows.
        rows: (b,) of them.
        tag: the token that begins each utterance of the speaker.
        ahead: see `unrepeated`.
    """

    def __init__(self, seen: Observed, rows: np.ndarray, tag: int, ahead: Ahead) -> None:
        self.seen, self.ahead = seen, ahead
        windows = {row: seen.tokens[row, : seen.lengths[row]].numpy() for row in rows.tolist()}
        self.earlier = {row: Earlier(window, tag) for row, window in windows.items()}

    def departures(self, probabilities: Tensor, chosen: Tensor, least: float) -> dict[int, int]:
        """Tokens by row, of those rows that leave a repeat now."""
        paths = {row: [int(chosen[row])] for row in self.earlier}
        along = self._follow(paths)
        left = {
            row: self._alternatives(row, paths[row], [probabilities[row], *along[row]], least)
            for row in self.earlier
            if self.earlier[row].repeats(paths[row])
        }
        best = self._best(left)
        return {row: path[0] for row, path in best.items() if len(path) == 1}

    def _follow(self, paths: dict[int, list[int]]) -> dict[int, list[Tensor]]:
        """Let each path go on greedily while it leads along an earlier utterance.

        Returns:
            The probabilities (V,) by which each token was added, by row.
        """
        found: dict[int, list[Tensor]] = {row: [] for row in paths}
        while going_on := {row: path for row, path in paths.items() if self._goes_on(row, path)}:
            probabilities = self.ahead(self._continued(going_on))
            likeliest = probabilities.argmax(1).tolist()
            for (row, path), following, token in zip(going_on.items(), probabilities, likeliest):
                found[row].append(following)
                path.append(token)
        return found

    def _goes_on(self, row: int, path: list[int]) -> bool:
        fits = self.seen.lengths[row] + len(path) <= self.seen.tokens.shape[1]
        return bool(fits) and self.earlier[row].leads_on(path)

    def _continued(self, paths: dict[int, list[int]]) -> Observed:
        """The observations of the rows of `paths`, each followed by its path."""
        part = self.seen.part(np.array(list(paths)))
        tokens, lengths = part.tokens.clone(), part.lengths.copy()
        for place, path in enumerate(paths.values()):
            end = lengths[place] + len(path)
            tokens[place, lengths[place] : end] = torch.tensor(path, dtype=tokens.dtype)
            lengths[place] = end
        return part._replace(tokens=tokens, lengths=lengths, allowed=None)

    def _alternatives(
        self, row: int, path: list[int], along: list[Tensor], least: float
    ) -> list[_Alternative]:
        """Alternatives to the tokens of a path, likeliest first.

        Args:
            row: of the path.
            path: K tokens.
            along: K probabilities (V,), of the tokens at each place.
            least: see `unrepeated`.
        """
        found = []
        for place, probabilities in enumerate(along):
            for token in (probabilities >= least).nonzero()[:, 0].tolist():
                other = [*path[:place], token]
                if token != path[place] and not self.earlier[row].repeats(other):
                    found.append(_Alternative(float(probabilities[token]), other))
        return sorted(found, key=lambda other: -other.probability)[:MOST]

    def _best(self, left: dict[int, list[_Alternative]]) -> dict[int, list[int]]:
        """Of each row the path to the first alternative that does not lead into a repeat."""
        best: dict[int, list[int]] = {}
        while left := {row: others for row, others in left.items() if others}:
            tried = {row: list(others[0].path) for row, others in left.items()}
            self._follow(tried)
            for row, others in left.items():
                if not self.earlier[row].repeats(tried[row]):
                    best[row] = others[0].path
            left = {row: others[1:] for row, others in left.items() if row not in best}
        return best


def fitting_repeats(least: float | None, space: Any) -> float | None:
    """`least`, or None where observations do not tell the speaker's utterances from others'.

    Raises:
        ValueError: it is no probability above 0.
    """
    if least is None:
        return None
    if not 0 < finite_number("avoid_repeats", least) <= 1:
        raise ValueError(f"avoid_repeats: expected a probability above 0 or None, got {least}")
    return None if getattr(space, "learner_tag", None) is None else least
