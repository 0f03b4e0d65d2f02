"""Check that the weights of a model are finite, when it is loaded or is to play."""

from collections.abc import Iterator
from typing import Any

HOLDERS = ("policy", "model", "network")
"""Attributes under which a policy or judge has the module with its weights."""


def check_finite(owner: Any, what: str, remedy: str) -> None:
    """Refuse a model of PyTorch with a weight that is NaN or infinite.

    NaN loses every comparison: such a model would always choose the first action, and its scores
    would look like any others.

    Args:
        owner: a module, or an object with one as its `policy`, `model` or `network`; anything else
            has no weights.
        what: owner of the weights, for the error.
        remedy: advice for the error.

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
