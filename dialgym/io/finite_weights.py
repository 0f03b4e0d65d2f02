"""Weights that are no numbers: refused where a model is loaded or is to play."""

from collections.abc import Iterator
from typing import Any

HOLDERS = ("policy", "model", "network")
"""Attributes by which what plays or judges has the module with its weights."""


def check_finite(owner: Any, what: str, remedy: str) -> None:
    """Refuse a model of PyTorch with a weight that is NaN or infinite.

    Such a model plays on without a word: NaN loses every comparison, so that it takes the first
    action always, and scores of nothing are shown as scores.

    Args:
        owner: a module, or what has one as its `policy`, `model` or `network`; anything else has no
            weights to look at.
        what: whose weights they are, for the error.
        remedy: what to do, for the error.

    Raises:
        ValueError: a weight is not finite; the message names it.
    """
    for name, weight in _weights(owner):
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            bad = int((~weight.isfinite()).sum())
            raise ValueError(
                f"{what}: expected finite weights; {bad} of {weight.numel()} in {name!r} are NaN "
                f"or infinite. {remedy}"
            )


def _weights(owner: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    if callable(getattr(owner, "named_parameters", None)):
        yield from owner.named_parameters()
    elif depth:
        for name in HOLDERS:
            yield from _weights(getattr(owner, name, None), depth - 1)
