"""Q of all acts as one Gaussian process: a row of dictionaries, one for each group of acts.

The noise of GP-SARSA's model is that of Engel et al. (2005): r_t = Q_t - gamma Q_t+1 + e_t -
gamma e_t+1, with independent e of deviation sigma. Summed up to the end of a dialogue that is
R_t = Q_t + e_t, with R_t the discounted return: the posterior is that of regression on returns,
exactly. So acts without covariances (the delta kernel) stay apart, and each has a small dictionary
of its own, where the recursion over temporal differences drags one large covariance of all along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy

import numpy as np

from agents.acts.gp.act_kernels import ActKernel, similarities
from agents.acts.gp.kernels import Kernel, kind_of, variances
from agents.acts.gp.sparse import SparseGP
from agents.storage.values import storable


@storable
class QProcess:
    """Q(features, act) by names of features and acts, which domains can share.

    Args:
        features: names of the F features.
        kernel: of features.
        act_kernel: of acts.
        sigma: deviation of the noise of returns.
        nu, budget: of each dictionary, see `SparseGP`.
        outputs: K, the number of objectives.
        scales: what features are multiplied by, by the kind of their name (`kind_of`); 1 where
            nothing is said.
        forgetting: see `SparseGP`.
    """

    def __init__(
        self,
        features: Sequence[str],
        kernel: Kernel,
        act_kernel: ActKernel,
        sigma: float,
        nu: float,
        budget: int | None,
        outputs: int = 1,
        scales: dict[str, float] | None = None,
        forgetting: float = 1.0,
    ) -> None:
        self.features: tuple[str, ...] = ()
        self.kernel, self.act_kernel, self.sigma = kernel, act_kernel, sigma
        self.nu, self.budget, self.outputs = nu, budget, outputs
        self.forgetting, self.scales = forgetting, dict(scales or {})
        self.groups: dict[str, SparseGP] = {}
        self.numbers: dict[str, int] = {}  # of acts
        self.similar = np.empty((0, 0))  # (A, A), of acts by their numbers
        self.widen(features)

    def __len__(self) -> int:
        """The inputs in all dictionaries."""
        return sum(map(len, self.groups.values()))

    def copy(self) -> QProcess:
        """Another one that knows the same."""
        return deepcopy(self)

    def widen(self, features: Iterable[str]) -> None:
        """Know of these features too; those that are new were 0 in all that has been seen."""
        new = [name for name in features if name not in self.features]
        self.features += tuple(new)
        self.factors = np.array([self.scales.get(kind_of(name), 1.0) for name in self.features])
        for group in self.groups.values():
            group.widen(len(new))

    def columns(self, features: Sequence[str]) -> np.ndarray:
        """(f,) int64: the places of features, all of which must be known."""
        place = {name: i for i, name in enumerate(self.features)}
        return np.array([place[name] for name in features])

    def prior(self, x: np.ndarray) -> np.ndarray:
        """(n,): variances of Q at features (n, F) before anything is seen."""
        return variances(self.kernel, x * self.factors)

    def predict(
        self, x: np.ndarray, acts: Sequence[str], masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, A, K) and variances (n, A) of features (n, F) and acts.

        With masks (n, A) those of acts that no row allows are the prior's.
        """
        means = np.zeros((len(x), len(acts), self.outputs))
        scaled = x * self.factors
        prior = variances(self.kernel, scaled)
        spreads = np.repeat(prior[:, None], len(acts), axis=1)
        needed = np.ones(len(acts), bool) if masks is None else masks.any(0)
        places: dict[str, list[int]] = {}
        for place in np.flatnonzero(needed).tolist():
            places.setdefault(self.act_kernel.group(acts[place]), []).append(place)
        for name, found in places.items():
            if name not in self.groups:
                continue
            numbers = np.array([self._number(acts[place]) for place in found]).repeat(len(x))
            tiled = scaled if len(found) == 1 else np.tile(scaled, (len(found), 1))
            mean, known = self.groups[name].predict(tiled, numbers)
            for i, place in enumerate(found):
                rows = slice(i * len(x), (i + 1) * len(x))
                means[:, place], spreads[:, place] = mean[rows], prior - known[rows]
        return means, np.maximum(spreads, 0.0)

    def observe(
        self, x: np.ndarray, acts: Sequence[str], returns: np.ndarray, noise: np.ndarray
    ) -> None:
        """Learn from returns (n, K) of features (n, F) and acts, n of them.

        Args:
            x, acts, returns: what was done, and what it led to.
            noise: (n,), variances of the noise in units of sigma squared.
        """
        scaled, groups = x * self.factors, [self.act_kernel.group(act) for act in acts]
        numbers = np.array([self._number(act) for act in acts])
        for name in dict.fromkeys(groups):
            rows = np.flatnonzero([group == name for group in groups])
            self._group(name).observe(
                scaled[rows], numbers[rows], returns[rows], self.sigma**2 * noise[rows]
            )

    def _number(self, act: str) -> int:
        if act not in self.numbers:
            self.numbers[act] = len(self.numbers)
            row = similarities(self.act_kernel, [act], [*self.numbers])
            self.similar = np.pad(self.similar, (0, 1))
            self.similar[-1], self.similar[:, -1] = row, row
            for group in self.groups.values():
                group.similar = self.similar
        return self.numbers[act]

    def _group(self, name: str) -> SparseGP:
        if name not in self.groups:
            self.groups[name] = SparseGP(
                len(self.features), self.kernel, self.similar, self.nu, self.budget,
                self.outputs, self.forgetting,
            )  # fmt: skip
        return self.groups[name]
