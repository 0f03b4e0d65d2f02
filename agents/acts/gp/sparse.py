"""Sparse online Gaussian process regression over a dictionary of inputs.

After Csato and Opper (2002) and Engel et al. (2005); Gasic and Young (2014) have it for dialogue.
An input x is seen through its whitened covariances with the dictionary, z(x) = W k(x), with
W K W' = I: a priori the weights of z are independent standard normal, and the posterior is that of
Bayesian linear regression. W grows by a row with each new entry (the partitioned inverse of K, in
the form of its square root), so that a step is quadratic in the dictionary's size at most, and no
variance is ever negative.
"""

from __future__ import annotations

import numpy as np

from agents.acts.gp.kernels import Kernel, covariances, variances
from agents.storage.values import storable

EPSILON = 1e-10
"""Share of an input's prior variance below which it counts as one that the dictionary spans."""


@storable
class SparseGP:
    """A function of (features, act) with K outputs that share inputs and covariances.

    Args:
        size: F, the number of features.
        kernel: of features.
        similar: (A, A), covariances of acts by their numbers.
        nu: largest part of an input's prior variance, in the units of the outputs, that the
            dictionary may fail to explain without the input being added to it.
        budget: largest dictionary; None for any. Of a full one the entry goes whose loss moves the
            posterior mean least; what is believed of the others stays as it is.
        outputs: K.
        forgetting: factor by which what is known fades into the prior with each observation (Van
            Vaerenbergh et al. 2012, Kernel recursive least-squares tracker); 1 keeps all.
    """

    def __init__(
        self,
        size: int,
        kernel: Kernel,
        similar: np.ndarray,
        nu: float,
        budget: int | None = None,
        outputs: int = 1,
        forgetting: float = 1.0,
    ) -> None:
        self.kernel, self.similar, self.nu, self.budget = kernel, similar, nu, budget
        self.forgetting = forgetting
        self.inputs = np.empty((0, size))  # (m, F)
        self.acts = np.empty(0, np.int64)  # (m,)
        self.whitening = np.empty((0, 0))  # (m, m), W
        self.weights = np.empty((0, outputs))  # (m, K), their means
        self.covariance = np.empty((0, 0))  # (m, m), of the weights

    def __len__(self) -> int:
        """m, the size of the dictionary."""
        return len(self.inputs)

    def predict(self, x: np.ndarray, acts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, K) of features (n, F) with acts (n,), and how much of their variances is known.

        What is left of the prior's variances (n,) is those of the posterior.
        """
        z = self._whitened(x, acts)
        return z @ self.weights, np.einsum("nm,nm->n", z, z - z @ self.covariance)

    def observe(self, x: np.ndarray, acts: np.ndarray, y: np.ndarray, noise: np.ndarray) -> None:
        """Learn that outputs (n, K), with noise of variances (n,), belong to (n, F) and (n,)."""
        for i in range(len(x)):
            self._offer(x[i : i + 1], acts[i : i + 1])
        self._fade(self.forgetting ** len(x))
        z = self._whitened(x, acts)
        spread = z @ self.covariance  # (n, m)
        root = np.linalg.cholesky(spread @ z.T + np.diag(noise))
        # One block of n observations; the product of a matrix with itself stays symmetric.
        gain = np.linalg.solve(root, spread)
        self.weights += gain.T @ np.linalg.solve(root, y - z @ self.weights)
        self.covariance -= gain.T @ gain
        while self.budget is not None and len(self) > self.budget:
            self._forget(self._least())

    def _whitened(self, x: np.ndarray, acts: np.ndarray) -> np.ndarray:
        """(n, m): z of inputs."""
        alike = self.similar[acts[:, None], self.acts]
        return (covariances(self.kernel, x, self.inputs) * alike) @ self.whitening.T

    def _offer(self, x: np.ndarray, act: np.ndarray) -> None:
        """Add an input (1, F) with its act (1,) to the dictionary if that does not explain it."""
        z = self._whitened(x, act)[0]
        prior = float(variances(self.kernel, x)[0])
        unexplained = prior - float(z @ z)
        if unexplained <= max(self.nu, EPSILON * prior):
            return
        m, scale = len(self), unexplained**-0.5
        row = -scale * (z @ self.whitening)
        self.whitening = np.pad(self.whitening, (0, 1))
        self.whitening[m, :m], self.whitening[m, m] = row, scale
        self.covariance = np.pad(self.covariance, (0, 1))
        self.covariance[m, m] = 1.0
        self.weights = np.pad(self.weights, ((0, 1), (0, 0)))
        self.inputs = np.concatenate((self.inputs, x))
        self.acts = np.concatenate((self.acts, act))

    def _fade(self, factor: float) -> None:
        """Mix the posterior with the prior, which is N(0, I)."""
        if factor < 1:
            self.covariance = factor * self.covariance + (1 - factor) * np.eye(len(self))
            self.weights *= factor**0.5

    def _least(self) -> int:
        """The entry whose mean the others predict best, in units of its prior deviation.

        Without the entry its mean would move by a_j / Q_jj, with Q the inverse of K and a = Q mu,
        and the variance that the others leave it is 1 / Q_jj.
        """
        moved = np.square(self.whitening.T @ self.weights).sum(1)
        return int(np.argmin(moved / np.square(self.whitening).sum(0)))

    def _forget(self, entry: int) -> None:
        """Remove an entry; means and covariances at all the others stay what they are.

        A reflection H turns the weights so that the last alone is about the entry, which is
        marginalised: (H W) K (H W)' = I still.
        """
        normal = self.whitening[:, entry] / np.linalg.norm(self.whitening[:, entry])
        normal[-1] += 1.0 if normal[-1] >= 0 else -1.0
        normal /= np.linalg.norm(normal)
        keep = np.arange(len(self)) != entry
        self.whitening = _reflected(self.whitening, normal)[:-1, keep]
        self.weights = _reflected(self.weights, normal)[:-1]
        self.covariance = _reflected(_reflected(self.covariance, normal).T, normal)[:-1, :-1]
        self.inputs, self.acts = self.inputs[keep], self.acts[keep]

    def widen(self, columns: int) -> None:
        """Append features that are 0 in all that has been seen."""
        self.inputs = np.pad(self.inputs, ((0, 0), (0, columns)))


def _reflected(rows: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """H rows, with H = I - 2 n n'."""
    reflected: np.ndarray = rows - 2.0 * np.outer(normal, normal @ rows)
    return reflected
