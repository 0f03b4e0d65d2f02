"""Greedy decoding that does not say an utterance again where the policy has an alternative.

A policy that learned by drawing can ask the same again, greedily, until the other party hangs up:
what would have led it out, chance, is gone. Only whole utterances count as repeats, since different
ones may begin alike. So where the likeliest token leads along an earlier utterance, the policy is
asked what it would say next: it either leaves that utterance on its own, or the best place to leave
it is looked for, here or further on. Each token is decided from the window alone; what a search has
decided for tokens to come is remembered until they come.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.models.cache import precision, weight_versions
from agents.models.observations import Observed
from dialgym.errors import finite_number
from dialgym.language.tokenizers import END, TAGS

LEAST = 0.05
"""Default probability that an alternative must have."""
MOST = 8
"""Most alternatives to one repeat that are tried."""
MOST_DECIDED = 10_000
"""Most tokens to come that are remembered; all are forgotten where there would be more."""
CLOSE = 1e-4
"""Farthest that a probability may be from the one by which a token was decided."""

Ahead = Callable[[Observed], Tensor]
"""From observations of b rows to the probabilities (b, V) of their next tokens."""


class Decided:
    """Tokens to come that searches have decided, by all that will then be observed."""

    def __init__(self) -> None:
        self.version: Any = None
        self.tokens: dict[Hashable, tuple[Tensor, int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:  # copies and pickles begin empty
        return Decided, ()

    def keep_up(self, policy: Any) -> None:
        """Clear the memory if weights, precision or settings have changed."""
        speech = policy.config["avoid_repeats"], policy.sampling, getattr(policy, "decoding", None)
        version = precision(policy.device), weight_versions(policy), speech
        if version != self.version:
            self.version, self.tokens = version, {}

    def get(self, before: Hashable, probabilities: Tensor) -> int | None:
        """The token after `before`, if it was decided by about the same probabilities (V,)."""
        if before not in self.tokens:
            return None
        then, token = self.tokens[before]
        return token if bool(((then - probabilities).abs() < CLOSE).all()) else None

    def add(self, before: Hashable, probabilities: Tensor, token: int) -> None:
        """Remember the token after `before`, decided by the probabilities (V,)."""
        if len(self.tokens) >= MOST_DECIDED:
            self.tokens = {}
        self.tokens[before] = probabilities.clone(), token


def unrepeated(
    probabilities: Tensor,
    seen: Observed,
    tag: int,
    least: float | None,
    ahead: Ahead,
    decided: Decided,
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
        decided: by earlier calls with the same `tag`, `least` and `ahead`; it is added to.
    """
    chosen = probabilities.argmax(1)
    if least is None:
        return chosen
    rows = leading_along(seen.tokens.numpy(), seen.lengths, tag, chosen.cpu().numpy())
    if len(rows):
        second = probabilities[torch.from_numpy(rows).to(chosen.device)].topk(2).values[:, 1]
        rows = rows[(second >= least).cpu().numpy()]
    open_rows = []
    for row in rows.tolist():
        token = decided.get(_before(seen, row), probabilities[row])
        if token is None:
            open_rows.append(row)
        else:
            chosen[row] = token
    if open_rows:
        plans = _Search(seen, open_rows, tag, ahead).plans(probabilities, chosen, least)
        for row, plan in plans.items():
            chosen[row] = plan.path[0]
            for place, following in enumerate(plan.along, 1):
                before = _before(seen, row, plan.path[:place])
                decided.add(before, following, plan.path[place])
    return chosen


def _before(seen: Observed, row: int, path: Sequence[int] = ()) -> Hashable:
    """All that is observed of a row before the token after `path`."""
    window = seen.tokens[row, : seen.lengths[row]].tolist()
    features = None if seen.features is None else seen.features[row].numpy().tobytes()
    return seen.tokens.shape[1], np.array([*window, *path]).tobytes(), features


def leading_along(
    tokens: np.ndarray, lengths: np.ndarray, tag: int, following: np.ndarray
) -> np.ndarray:
    """Rows (b,) in which the current utterance, with its next token, begins an earlier one.

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


class _Plan(NamedTuple):
    """Tokens that follow a window."""

    path: list[int]  # K tokens
    along: list[Tensor]  # K - 1 probabilities (V,), of all but the first


class _Search:
    """Search for the places at which some rows leave what they would say again.

    Args:
        seen: the observations of all B rows.
        rows: some of them.
        tag: the token that begins each utterance of the speaker.
        ahead: see `unrepeated`.
    """

    def __init__(self, seen: Observed, rows: Sequence[int], tag: int, ahead: Ahead) -> None:
        self.seen, self.ahead = seen, ahead
        windows = {row: seen.tokens[row, : seen.lengths[row]].numpy() for row in rows}
        self.earlier = {row: Earlier(window, tag) for row, window in windows.items()}

    def plans(self, probabilities: Tensor, chosen: Tensor, least: float) -> dict[int, _Plan]:
        """The tokens that follow now, by row, as far as they are decided."""
        plans = self._follow({row: [int(chosen[row])] for row in self.earlier})
        left = {
            row: self._alternatives(row, plan, probabilities[row], least)
            for row, plan in plans.items()
            if self.earlier[row].repeats(plan.path)
        }
        undecided = {row: _Plan(plans[row].path[:1], []) for row in left if len(left[row]) == MOST}
        return {**plans, **undecided, **self._best(left)}

    def _follow(self, starts: dict[int, list[int]]) -> dict[int, _Plan]:
        """Let each row go on greedily while it leads along an earlier utterance.

        Args:
            starts: tokens by row.

        Returns:
            The plans by row; their probabilities are those of the added tokens.
        """
        plans = {row: _Plan([*start], []) for row, start in starts.items()}
        while going_on := [row for row, plan in plans.items() if self._goes_on(row, plan.path)]:
            probabilities = self.ahead(self._continued({row: plans[row].path for row in going_on}))
            likeliest = probabilities.argmax(1).tolist()
            for row, following, token in zip(going_on, probabilities, likeliest, strict=True):
                plans[row].along.append(following)
                plans[row].path.append(token)
        return plans

    def _goes_on(self, row: int, path: list[int]) -> bool:
        fits = self.seen.lengths[row] + len(path) <= self.seen.tokens.shape[1]
        return bool(fits) and self.earlier[row].leads_on(path)

    def _continued(self, paths: dict[int, list[int]]) -> Observed:
        """The observations of the rows of `paths`, each followed by its path."""
        part = self.seen.select(np.array(list(paths)))
        tokens, lengths = part.tokens.clone(), part.lengths.copy()
        for place, path in enumerate(paths.values()):
            end = lengths[place] + len(path)
            tokens[place, lengths[place] : end] = torch.tensor(path, dtype=tokens.dtype)
            lengths[place] = end
        return part._replace(tokens=tokens, lengths=lengths, allowed=None)

    def _alternatives(self, row: int, plan: _Plan, now: Tensor, least: float) -> list[_Plan]:
        """Alternatives to the tokens of a plan, likeliest first; each path ends with one.

        Args:
            row: of the plan.
            plan: K tokens.
            now: probabilities (V,) of the first of them.
            least: see `unrepeated`.
        """
        found = []
        for place, probabilities in enumerate([now, *plan.along]):
            for token in (probabilities >= least).nonzero()[:, 0].tolist():
                path = [*plan.path[:place], token]
                if token != plan.path[place] and not self.earlier[row].repeats(path):
                    found.append((float(probabilities[token]), _Plan(path, plan.along[:place])))
        return [plan for _, plan in sorted(found, key=lambda other: -other[0])[:MOST]]

    def _best(self, left: dict[int, list[_Plan]]) -> dict[int, _Plan]:
        """The first alternative in each row, continued, that does not lead into a repeat."""
        best: dict[int, _Plan] = {}
        while left := {row: others for row, others in left.items() if others}:
            tried = self._follow({row: others[0].path for row, others in left.items()})
            for row, plan in tried.items():
                if not self.earlier[row].repeats(plan.path):
                    best[row] = _Plan(plan.path, [*left[row][0].along, *plan.along])
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
