"""Covariances of two beliefs by their features."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from agents.storage.values import storable
from dialgym.errors import unknown, with_settings

Squares = Callable[[], tuple[Any, Any]]


class Kernel(Protocol):
    """A covariance that depends on two vectors by their products alone."""

    def of(self, products: Any, squares: Squares, exp: Callable[[Any], Any] = np.exp) -> Any:
        """(n, m): covariances.

        Args:
            products: (n, m), x . y.
            squares: gives x . x (n, 1) and y . y (m,), where they are needed.
            exp: that of the arrays' library.
        """
        ...


@storable
@dataclass(frozen=True)
class Linear:
    """k(x, y) = variance x . y: on sorted beliefs PyDial's "polysort"."""

    variance: float = 1.0

    def of(self, products: Any, squares: Squares, exp: Callable[[Any], Any] = np.exp) -> Any:
        """See `Kernel`."""
        return self.variance * products


@storable
@dataclass(frozen=True)
class Polynomial:
    """k(x, y) = variance (x . y / size + offset)^degree; `size` is that of typical features."""

    degree: int = 2
    offset: float = 1.0
    variance: float = 1.0
    size: float = 1.0

    def of(self, products: Any, squares: Squares, exp: Callable[[Any], Any] = np.exp) -> Any:
        """See `Kernel`."""
        return self.variance * (products / self.size + self.offset) ** self.degree


@storable
@dataclass(frozen=True)
class RBF:
    """k(x, y) = variance exp(-|x - y|^2 / 2); length scales are those of the features."""

    variance: float = 100.0

    def of(self, products: Any, squares: Squares, exp: Callable[[Any], Any] = np.exp) -> Any:
        """See `Kernel`."""
        left, right = squares()
        return self.variance * exp(products - (left + right) / 2)


KERNELS: Mapping[str, Callable[..., Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "rbf": RBF,
}


def kernel_named(kernel: str | Kernel, settings: Mapping[str, Any] | None = None) -> Kernel:
    """The kernel itself, or one of `KERNELS` with settings.

    Raises:
        ValueError: another name, or other settings.
    """
    if not isinstance(kernel, str):
        return kernel
    if kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    return with_settings(KERNELS[kernel], f"kernel {kernel!r}", settings or {})


def covariances(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, m) of features x (n, F) and y (m, F)."""

    def squares() -> tuple[np.ndarray, np.ndarray]:
        return np.square(x).sum(1)[:, None], np.square(y).sum(1)

    found: np.ndarray = kernel.of(x @ y.T, squares)
    return found


def variances(kernel: Kernel, x: np.ndarray) -> np.ndarray:
    """(n,): the prior variances of features (n, F)."""
    squares = np.square(x).sum(1)
    found: np.ndarray = kernel.of(squares, lambda: (squares, squares))
    return found


def kind_of(name: str) -> str:
    """A name of an act or feature without the number of its slot: "slot03.request" -> "request"."""
    return re.sub(r"^(slot|info)\d+\.", r"\1.", name)
