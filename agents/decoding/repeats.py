"""The likeliest token that does not say again what the speaker has said before.

Greedy decoding of a policy that learned by drawing can ask the same again until the other party
hangs up: what would have got it out of there, chance, is gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from dialgym.errors import finite_number


def unrepeated(
    probabilities: Tensor, tokens: np.ndarray, lengths: np.ndarray, tag: int, least: float
) -> Tensor:
    """The likeliest tokens (B,) int64 that do not lead into an utterance said before.

    A token leads there where the utterance under way, with it, begins as an earlier one of the same
    speaker does. Then the likeliest token that does not is taken, where it has a probability of at
    least `least`; where none has, the likeliest of all.

    Args:
        probabilities: (B, V).
        tokens: (B, L) int, padded at the right.
        lengths: (B,) of the windows.
        tag: the token that begins each utterance of the speaker.
        least: probability that an alternative must have.
    """
    chosen = probabilities.argmax(1)
    for row, (window, length) in enumerate(zip(tokens, lengths)):
        heard, begun = _parted(window[:length], tag)
        if heard and _leads_back(heard, begun, int(chosen[row])):
            chosen[row] = _alternative(probabilities[row], heard, begun, least)
    return chosen


def _parted(window: np.ndarray, tag: int) -> tuple[bytes, np.ndarray]:
    """The utterances before the one under way, as bytes of int64, and that one with its tag."""
    tags = np.flatnonzero(window == tag)
    if len(tags) < 2:
        return b"", window[:0]
    window = window.astype(np.int64)
    return window[: tags[-1]].tobytes(), window[tags[-1] :]


def _leads_back(before: bytes, begun: np.ndarray, token: int) -> bool:
    """Return True if the utterance under way and `token` stand, tag and all, in those `before`."""
    looked_for = np.append(begun, token).tobytes()
    at = before.find(looked_for)
    while at % 8 and at >= 0:  # not where a token begins
        at = before.find(looked_for, at + 1)
    return at >= 0


def _alternative(probabilities: Tensor, before: bytes, begun: np.ndarray, least: float) -> Tensor:
    order = probabilities.argsort(descending=True)
    for token in order[1:]:
        if probabilities[token] < least:
            break
        if not _leads_back(before, begun, int(token)):
            return token
    return order[0]


def check_repeats(least: float | None, space: Any) -> None:
    """Raises ValueError for a bad probability, or a space without a `learner_tag`."""
    if least is None:
        return
    if not 0 < finite_number("avoid_repeats", least) <= 1:
        raise ValueError(f"avoid_repeats: expected a probability above 0 or None, got {least}")
    if getattr(space, "learner_tag", None) is None:
        raise ValueError(
            "avoid_repeats: expected an observation space with a `learner_tag`, which tells the "
            f"learner's utterances from others', got {type(space).__name__}; leave it out"
        )
