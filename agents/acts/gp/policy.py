"""GPPolicy: the act whose value is greatest, or greatest in a draw from what is believed of it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy

from agents.models.masking import fitting


class Believer(Protocol):
    """Algorithm that estimates Q for a policy, with uncertainty."""

    def estimate(
        self, beliefs: np.ndarray, masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations (n, A) of Q of beliefs (n, B), within masks (n, A)."""

    def begin_from(self, other: Any) -> None:
        """Copy the posterior of another algorithm."""


class GPPolicy(BasePolicy):
    """Chooses acts by values that are uncertain.

    It has no networks: values and the generator are those of its algorithm, `learner`.

    Args:
        observation_space: `Box(B,)`.
        action_space: `Discrete(A)`.
        lr_schedule: unused; Stable-Baselines3 gives it to each policy.
        scale: deviations of the draws are multiplied by it when playing without `deterministic`.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Any = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(observation_space, action_space)
        self.scale = scale
        self.learner: Believer
        self.rng = np.random.default_rng()

    def q_distribution(
        self, observation: Any, action_masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations (n, A) of Q of every act, for beliefs (n, B)."""
        beliefs = np.asarray(observation).reshape(-1, *self.observation_space.shape)  # type: ignore[misc]
        return self.learner.estimate(beliefs, action_masks)

    def choose(
        self,
        beliefs: np.ndarray,
        masks: np.ndarray,
        scale: float,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """(n,) acts for beliefs (n, B) within masks (n, A); see `drawn`."""
        return self.drawn(*self.q_distribution(beliefs, masks), masks, scale, rng)

    def drawn(
        self,
        values: np.ndarray,
        deviations: np.ndarray,
        masks: np.ndarray,
        scale: float,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """(n,) acts by Thompson sampling: each act's value is drawn, the greatest is taken.

        Args:
            values, deviations: (n, A), what is believed of each.
            masks: (n, A) bool, acts that are allowed.
            scale: of the deviations; 0 takes the means.
            rng: draws; the learner's own by default.
        """
        if scale:
            draws = (rng or self.rng).standard_normal(values.shape)
            values = values + scale * deviations * draws
        acts: np.ndarray = np.where(masks, values, -np.inf).argmax(1)
        return acts

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """The next acts, one or several as observations are, within masks (n, A).

        What is drawn follows from NumPy's global generator, which `set_random_seed` seeds, and
        leaves the numbers of training alone.
        """
        beliefs = np.asarray(observation)
        many = beliefs.ndim > 1
        beliefs = beliefs.reshape(-1, *self.observation_space.shape)  # type: ignore[misc]
        masks = fitting(action_masks, len(beliefs), self.action_space)
        if deterministic:
            acts = self.choose(beliefs, masks, 0.0)
        else:
            rng = np.random.default_rng(np.random.randint(2**31))  # noqa: NPY002
            acts = self.choose(beliefs, masks, self.scale, rng)
        return (acts if many else acts[0]), state

    def start_from(self, other: Any) -> None:
        """Copy the posterior of another policy, possibly of another domain.

        Raises:
            ValueError: it is no `GPPolicy`.
        """
        if not isinstance(other, GPPolicy):
            raise ValueError(
                f"cannot start from a {type(other).__name__}: expected a GPPolicy; what another "
                "model knows can be the prior, GPSarsa(prior=...)"
            )
        self.learner.begin_from(other.learner)

    def _predict(self, observation: Any, deterministic: bool = False) -> torch.Tensor:
        acts, _ = self.predict(observation.cpu().numpy(), deterministic=deterministic)
        return torch.as_tensor(acts)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "scale": self.scale}
