"""GP-SARSA: values of acts as a Gaussian process, chosen by Thompson sampling."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv

from agents.acts.base import copied_to
from agents.acts.belief_structure import structure_of
from agents.acts.gp.act_kernels import ActKernel, act_kernel_named
from agents.acts.gp.coordinates import TOP, Coordinates, Plain, coordinates_of
from agents.acts.gp.dialogue_learner import DialogueLearner, ProcessOptions
from agents.acts.gp.evidence import fitted_scales
from agents.acts.gp.kernels import Kernel, kernel_named
from agents.acts.gp.open_dialogues import BootstrapValue, OpenDialogues, Returns
from agents.acts.gp.q_process import QProcess
from agents.argument_checks import COUNT, FROM_0, POSITIVE, require
from agents.storage.models import load, save
from dialgym.io.files import read_file


class SarsaOptions(ProcessOptions, total=False):
    """Arguments of `GPSarsa`."""

    kernel: str | Kernel
    kernel_kwargs: Mapping[str, Any] | None
    act_kernel: str | Mapping[str, Any] | ActKernel
    sigma: float
    nu: float
    budget: int | None
    forgetting: float
    scale: float
    test_scale: float
    top: int
    prior: Any
    objectives: Mapping[str, float] | None
    scales_after: int


class GPSarsa(DialogueLearner):
    """Sparse online Gaussian process SARSA, with an uncertainty of every value.

    Source: Engel, Mannor and Meir (2005), Reinforcement learning with Gaussian processes; Gasic and
    Young (2014), Gaussian processes for POMDP-based dialogue manager optimization. A rollout goes
    on until a dialogue ends, in any row; what it led to is then learned. A dialogue that a limit
    cuts off is worth what is believed of its last belief, with that uncertainty in its noise.
    (PyDial credits each act with the return of the whole dialogue, turns before it included; here
    it is that of what follows.)

    Args:
        policy: "GPPolicy".
        env: any env or VecEnv of beliefs and acts. Where its acts have a `structure`, slots are
            seen by their most believed values, first the most believed (`Abstract`).
        kernel: "linear", "polynomial", "rbf", or a `Kernel` of your own.
        kernel_kwargs: settings of a kernel by name.
        act_kernel: "delta", "kind", "hdc", "distributed", see `ACT_KERNELS`; a mapping with
            settings, such as `{"kernel": "kind", "similarity": 0.2}`; or an `ActKernel` of your
            own.
        gamma: discount from one decision to the next.
        sigma: deviation of the noise of a return.
        nu: what of a variance a dictionary may leave unexplained, see `SparseGP`.
        budget: largest dictionary of a group of acts; None for any.
        forgetting: what is known of a group of acts fades into the prior by this factor with each
            new return of theirs; those of early, worse policies then weigh less. 1 keeps all.
        scale: deviations are multiplied by it in training; the greater, the more is explored.
        test_scale: the same in `predict` without `deterministic`.
        top: values of a slot that are features.
        prior: a model with `q_distribution`, or the path of a saved one, whose means are the prior
            means: the process learns how returns differ from them.
        objectives: weights of components of the reward by name, as in `info["reward_components"]`:
            their returns are learned apart from one another, and `objectives` may be changed at any
            time after (Ultes et al. 2017, Reward-balancing with multi-objective reinforcement
            learning). In training the weights of each decision are drawn uniformly.
        scales_after: dialogues after which length scales of features are learned by evidence, once
            (`fitted_scales`); 0 is never.
        kwargs: `stats_window_size`, `tensorboard_log`, `policy_kwargs`, `verbose` and `seed`, as
            everywhere in Stable-Baselines3; and `device`, which is not used, as the process is
            NumPy's.

    Raises:
        ValueError: a number that cannot be, an unknown kernel, or a prior of other spaces.
    """

    learns_by_sampling = True

    coordinates: Coordinates
    process: QProcess

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        kernel: str | Kernel = "linear",
        kernel_kwargs: Mapping[str, Any] | None = None,
        act_kernel: str | Mapping[str, Any] | ActKernel = "delta",
        sigma: float = 5.0,
        nu: float = 0.001,
        budget: int | None = 500,
        forgetting: float = 1.0,
        scale: float = 3.0,
        test_scale: float = 1.0,
        top: int = TOP,
        prior: Any = None,
        objectives: Mapping[str, float] | None = None,
        scales_after: int = 0,
        **kwargs: Unpack[ProcessOptions],
    ) -> None:
        require(type(self).__name__, COUNT, top=top, budget=budget)
        require(type(self).__name__, POSITIVE, scale=scale, sigma=sigma)
        require(type(self).__name__, FROM_0, nu=nu)
        self.kernel = kernel_named(kernel, kernel_kwargs)
        self.act_kernel = act_kernel_named(act_kernel)
        self.sigma, self.nu, self.budget, self.top = sigma, nu, budget, top
        self.forgetting = forgetting
        self.scale, self.test_scale = scale, test_scale
        self.objectives = None if objectives is None else dict(objectives)
        self.scales_after = scales_after
        self.history: list[Returns] | None = []  # kept until length scales are learned
        self.prior_file = None if prior is None else _file_of(prior)
        super().__init__(policy, env, **kwargs)

    def _setup_model(self) -> None:
        """The policy; and the process, but for a saved model, which has its own."""
        super()._setup_model()
        if not hasattr(self, "coordinates"):
            self.coordinates = coordinates_of(self.env, self.top)
            here = self.coordinates
            self.act_kernel = self.act_kernel.of_slots(here.acts, here.slots)
        if not hasattr(self, "process"):
            self.process = self._new_process()
        self.process.widen(self.coordinates.features)  # it may have been that of another domain
        self.prior = None if self.prior_file is None else load(io.BytesIO(self.prior_file))
        if self.prior is not None:
            _check_prior(self.prior, self)
        self.policy.scale, self.policy.learner = self.test_scale, self

    def _new_process(self, scales: dict[str, float] | None = None) -> QProcess:
        return QProcess(
            self.coordinates.features, self.kernel, self.act_kernel, self.sigma, self.nu,
            self.budget, len(self.objectives or [None]), scales, self.forgetting,
        )  # fmt: skip

    # Values

    def estimate(
        self, beliefs: np.ndarray, masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations (n, A), of the objectives as they are weighted."""
        weights = np.array([*(self.objectives or {"reward": 1.0}).values()])
        means, variances = self._predict_all(beliefs, masks)
        return weighted(means, variances, np.tile(weights, (len(beliefs), 1)))

    def _predict_all(
        self, beliefs: np.ndarray, masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, A, K) and variances (n, A)."""
        means, variances = self.process.predict(
            self._features(beliefs), self.coordinates.acts, masks
        )
        if self.prior is not None:
            means = means + self.prior.q_distribution(beliefs)[0][:, :, None]
        return means, variances

    def _features(self, beliefs: np.ndarray, process: QProcess | None = None) -> np.ndarray:
        """(n, F): what a process, its own or another, sees of beliefs (n, B)."""
        process = process or self.process
        found = self.coordinates(beliefs)
        if self.coordinates.features == process.features:
            return found
        wide = np.zeros((len(beliefs), len(process.features)))
        wide[:, process.columns(self.coordinates.features)] = found
        return wide

    # Learning

    def explore(self, beliefs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """(n,) acts, by a draw of `scale`; of several objectives with weights that are drawn."""
        if not self.objectives:
            return self.policy.choose(beliefs, masks, self.scale)
        count = len(self.objectives)
        drawn = count * self.generator.dirichlet(np.ones(count), len(beliefs))
        values = weighted(*self._predict_all(beliefs, masks), drawn)
        return self.policy.drawn(*values, masks, self.scale)

    def bootstrap_value(self, belief: np.ndarray, mask: np.ndarray) -> BootstrapValue:
        """Estimate the value that follows a belief (1, B) by the best of the allowed acts."""
        means, variances = self._predict_all(belief, mask)
        best = int(np.where(mask, self.estimate(belief, mask)[0], -np.inf).argmax())
        return BootstrapValue(means[0, best], 1.0 + float(variances[0, best]) / self.sigma**2)

    def absorb(self, found: Returns) -> None:
        """See `DialogueLearner`."""
        self._observe(found)
        if self.scales_after and self.history is not None:
            self.history.append(found)
            if self.dialogues >= self.scales_after:
                self._learn_scales()
        self.logger.record("train/dictionary", len(self.process))

    def _observe(self, found: Returns) -> None:
        x, acts = self._features(found.beliefs), self._acts(found)
        self.process.observe(x, acts, self._residuals(found), found.noise)

    def _acts(self, found: Returns) -> list[str]:
        """Names of the chosen acts."""
        return [self.coordinates.acts[act] for act in found.acts.tolist()]

    def _residuals(self, found: Returns) -> np.ndarray:
        """Residuals (n, K) of the returns under the prior."""
        if self.prior is None:
            return found.returns
        values = self.prior.q_distribution(found.beliefs)[0]
        return found.returns - np.take_along_axis(values, found.acts[:, None], 1)

    def _learn_scales(self) -> None:
        """Fit length scales to all data so far, then fit the process again with them."""
        seen, self.history = Returns.joined(self.history or []), None
        scales = fitted_scales(
            self.coordinates(seen.beliefs), self.coordinates.features, self._acts(seen),
            self._residuals(seen), self.sigma, self.kernel, self.act_kernel, self.generator,
        )  # fmt: skip
        self.process = self._new_process(scales)
        GPSarsa._observe(self, seen)  # of a committee, the other members have learned from it

    # Other domains

    def transferred(self, env: GymEnv, **changes: Any) -> Self:
        """A copy that acts in the domain of another env, and can learn on there.

        Slots of the domains are matched by rank, see `Abstract`. Of slots that it has not met it
        knows nothing, unless acts of a kind are alike (`KindKernel`).

        Args:
            env: of the other domain.
            changes: of attributes, such as `scale`.

        Raises:
            ValueError: one of the envs does not say what its beliefs and acts are about.
        """
        wrapped, who = self._wrap_env(env, verbose=0), type(self).__name__
        structure_of(wrapped, who)
        if isinstance(self.coordinates, Plain):
            raise ValueError(f"{who}: it has learned where nothing says what beliefs are about")
        here = {
            "coordinates": coordinates_of(wrapped, self.top),
            "open": OpenDialogues(wrapped.num_envs, self.gamma),
            "history": None,
            "dialogues": 0,
            "_n_updates": 0,
        }
        made: Self = copied_to(self, wrapped, ("_last_obs", "history"), {**here, **changes})
        return made

    def begin_from(self, other: GPSarsa) -> None:
        """Copy the posterior of another learner, possibly of another domain."""
        self.process = other.process.copy()
        self.process.widen(self.coordinates.features)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "prior"]


def weighted(
    means: np.ndarray, variances: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, A) and deviations (n, A) of objectives (n, A, K) with weights (n, K)."""
    length = np.square(weights).sum(1)[:, None]
    return np.einsum("nak,nk->na", means, weights), np.sqrt(variances * length)


def _file_of(prior: Any) -> bytes:
    """A model, or the path of a saved one, as it is kept in the file of another."""
    if isinstance(prior, str | Path):
        return read_file(Path(prior))
    file = io.BytesIO()
    save(prior, file)
    return file.getvalue()


def _check_prior(prior: Any, model: GPSarsa) -> None:
    spaces = [(m.observation_space.shape, m.action_space) for m in (prior, model)]
    if not hasattr(prior, "q_distribution") or spaces[0] != spaces[1] or model.objectives:
        raise ValueError(
            "GPSarsa: prior needs q_distribution, the same spaces, and one objective; got "
            f"{type(prior).__name__} of {spaces[0]} for {spaces[1]}"
        )
