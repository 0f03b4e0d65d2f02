"""Length scales of features, by the evidence of returns that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from agents.acts.gp.act_kernels import ActKernel, similarities
from agents.acts.gp.kernels import Kernel, kind_of

POINTS = 400
"""Decisions that the evidence is that of, at most; its cost is cubic in them."""
STEPS = 60
"""Steps of Adam."""


def fitted_scales(
    x: np.ndarray,
    features: Sequence[str],
    acts: Sequence[str],
    returns: np.ndarray,
    sigma: float,
    kernel: Kernel,
    act_kernel: ActKernel,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Length scales of features by evidence, by the kind of their name.

    Maximises log N(returns; 0, K + sigma^2 I) and a broad prior on the logarithm of scales, which
    keeps features that tell nothing where they were.

    Args:
        x: features (n, F).
        features: their names.
        acts: n names.
        returns: (n, K), of each objective.
        sigma: deviation of the noise.
        kernel, act_kernel: the covariances.
        rng: draws the decisions where there are more than `POINTS`.
    """
    chosen = np.sort(rng.permutation(len(x))[:POINTS])
    names, number = np.unique([acts[i] for i in chosen], return_inverse=True)
    similar = similarities(act_kernel, names.tolist(), names.tolist())
    alike = torch.as_tensor(similar[number[:, None], number])
    kinds = list(dict.fromkeys(map(kind_of, features)))
    column = torch.tensor([kinds.index(kind_of(name)) for name in features])
    seen = torch.as_tensor(x[chosen])
    targets = torch.as_tensor(returns[chosen])
    logs = torch.zeros(len(kinds), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logs], lr=0.1)
    noise = sigma**2 * torch.eye(len(chosen), dtype=torch.float64)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaled = seen * logs[column].exp()
        same = kernel.of(scaled @ scaled.T, partial(_squares, scaled), torch.exp)
        loss = logs.square().sum() / 2 - log_evidence(same * alike + noise, targets)
        loss.backward()
        optimizer.step()
    return dict(zip(kinds, logs.detach().exp().tolist()))


def log_evidence(covariance: Tensor, targets: Tensor) -> Tensor:
    """The log density of targets (n, K), each column N(0, covariance), up to a constant."""
    root = torch.linalg.cholesky(covariance)
    whitened = torch.linalg.solve_triangular(root, targets, upper=False)
    return -whitened.square().sum() / 2 - targets.shape[1] * root.diagonal().log().sum()


def _squares(x: Tensor) -> tuple[Tensor, Tensor]:
    squares = x.square().sum(1)
    return squares[:, None], squares
