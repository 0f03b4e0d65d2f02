"""A Bayesian committee machine: estimates of several processes, one of each domain, as one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from stable_baselines3.common.policies import BasePolicy

from agents.acts.gp.open_dialogues import Returns
from agents.acts.gp.q_process import QProcess
from agents.acts.gp.sarsa import GPSarsa, SarsaOptions
from agents.storage.models import load
from dialgym.errors import one_of

FLOOR = 1e-7
"""Least variance of an estimate."""
CREDITS = ("own", "equal", "winner", "share")


def combined(
    means: np.ndarray, variances: np.ndarray, priors: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean and variance of a committee of M Gaussian processes (Tresp 2000).

    1 / v = 1 / prior + sum_i max(0, 1 / v_i - 1 / prior_i) and m = v sum_i m_i / v_i: what each
    member has learned beyond its own prior, which need not be that of the committee. Of a member
    that has learned nothing neither part counts.

    Args:
        means: (M, n, A, K), of members whose prior means are 0.
        variances: (M, n, A).
        priors: (M, n, A), the variance of each member before it had seen anything.
        prior: (n, A), that of the committee.
    """
    precisions = 1.0 / np.maximum(variances, FLOOR)
    learned = np.maximum(precisions - 1.0 / np.maximum(priors, FLOOR), 0.0)
    variance = 1.0 / (1.0 / np.maximum(prior, FLOOR) + learned.sum(0))
    counted = np.where(learned > 0, precisions, 0.0)[..., None]
    return variance[..., None] * (counted * means).sum(0), variance


class Committee(GPSarsa):
    """GP-SARSA whose values are those of a Bayesian committee machine, with a member a domain.

    Source: Gasic et al. (2015), Policy committee for adaptation in multi-domain spoken dialogue
    systems; (2017), Dialogue manager domain adaptation using Gaussian process reinforcement
    learning. Members see beliefs by the rank of slots (`Abstract`), so that each has an opinion of
    every domain. That of the env's domain learns; `transferred` moves the committee to the next
    domain, with a new member for it.

    Args:
        policy, env: as of `GPSarsa`.
        members: of domains by name: each a `GPSarsa`, a `Committee`, whose own member is
            taken, or the path of a saved one.
        credit: who learns from a dialogue. "own" is the domain's member alone. Multi-agent learning
            gives all of them a part of its weight: "equal" gives 1 to each, as PyDial does; "share"
            gives each its part in the precision of the estimate of the act that was chosen;
            "winner" gives all to the most precise. A weight w divides the variance of the noise by
            w (the papers scale the return, which is then that of another task).
        kwargs: further arguments of `GPSarsa`.

    Raises:
        ValueError: as of `GPSarsa`; another credit, or a member with another kernel.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        members: Mapping[str, Any] | None = None,
        credit: str = "own",
        **kwargs: Unpack[SarsaOptions],
    ) -> None:
        one_of("credit", credit, CREDITS, "Committee")
        self.credit = credit
        self.members: dict[str, QProcess] = {}
        self.given = {name: _process_of(member) for name, member in (members or {}).items()}
        super().__init__(policy, env, **kwargs)

    def _setup_model(self) -> None:
        """The member of the env's domain too."""
        self.members |= self.given
        self.given = {}
        super()._setup_model()
        self.members[self.coordinates.domain] = self.process
        self._check_members()

    def _check_members(self) -> None:
        """Raises ValueError for a member unlike the committee; gives all of them its features."""
        for name, member in self.members.items():
            if (member.kernel, member.outputs) != (self.kernel, self.process.outputs):
                raise ValueError(
                    f"members: expected {self.kernel} and {self.process.outputs} objectives, as "
                    f"of the committee, got {member.kernel} and {member.outputs} of {name!r}"
                )
            member.widen(self.coordinates.features)

    def _new_process(self, scales: dict[str, float] | None = None) -> QProcess:
        own = self.coordinates.domain
        if scales is None and own in self.members:
            return self.members[own]
        return super()._new_process(scales)

    # Values

    def _predict_all(
        self, beliefs: np.ndarray, masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, A, K) and variances (n, A) of the committee."""
        means, variances, priors = self.opinions(beliefs, masks)
        own = priors[list(self.members).index(self.coordinates.domain)]
        mean, variance = combined(means, variances, priors, own)
        if self.prior is not None:
            mean = mean + self.prior.q_distribution(beliefs)[0][:, :, None]
        return mean, variance

    def opinions(
        self, beliefs: np.ndarray, masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means (M, n, A, K) of the members, their variances and those of their priors (M, n, A).

        The prior of the committee is that of the member of its own domain.
        """
        acts, found = self.coordinates.acts, []
        for member in self.members.values():
            x = self._features(beliefs, member)
            prior = np.repeat(member.prior(x)[:, None], len(acts), axis=1)
            found.append((*member.predict(x, acts, masks), prior))
        means, variances, priors = map(np.stack, zip(*found))
        return means, variances, priors

    # Learning

    def _observe(self, found: Returns) -> None:
        if self.credit == "own":
            super()._observe(found)
            return
        _, variances, _ = self.opinions(found.beliefs)
        chosen = variances[:, np.arange(len(found.acts)), found.acts]
        acts, returns = self._acts(found), self._residuals(found)
        for member, weight in zip(self.members.values(), credits_of(self.credit, chosen)):
            x, rows = self._features(found.beliefs, member), np.flatnonzero(weight > 0)
            if len(rows):
                done = [acts[row] for row in rows.tolist()]
                member.observe(x[rows], done, returns[rows], found.noise[rows] / weight[rows])

    def absorb(self, found: Returns) -> None:
        """See `DialogueLearner`."""
        super().absorb(found)
        self.members[self.coordinates.domain] = self.process  # another one, if scales are new

    def begin_from(self, other: GPSarsa) -> None:
        """Copy the posterior of another learner, or all members of another committee."""
        given = {other.coordinates.domain: other.process}
        if isinstance(other, Committee):
            given = other.members
        self.members |= {name: member.copy() for name, member in given.items()}
        self.process = self.members[self.coordinates.domain]
        self._check_members()

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "process"]


def credits_of(credit: str, variances: np.ndarray) -> np.ndarray:
    """(M, n): the weight of a decision for each member, by variances (M, n) of its value."""
    precisions = 1.0 / np.maximum(variances, FLOOR)
    if credit == "equal":
        return np.ones_like(precisions)
    if credit == "share":
        shares: np.ndarray = precisions / precisions.sum(0)
        return shares
    return (np.arange(len(precisions))[:, None] == precisions.argmax(0)).astype(float)


def _process_of(member: Any) -> QProcess:
    """The process of a model, or of a saved one, or a process itself."""
    model = load(member) if isinstance(member, str | Path) else member
    process = model if isinstance(model, QProcess) else getattr(model, "process", None)
    if not isinstance(process, QProcess):
        raise ValueError(f"members: expected GPSarsa models, got {type(model).__name__}")
    return process.copy()
