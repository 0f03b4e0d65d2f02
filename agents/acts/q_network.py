"""Q networks over beliefs: plain or dueling, certain, or uncertain in one of several ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from agents.acts.curiosity import Curiosity
from agents.acts.uncertain_layers import VARIATIONAL, make_linear
from agents.models.act_masks import masked, random_acts, random_below, uniform
from agents.models.masking import count_acts, fitting
from dialgym.errors import with_settings

SAMPLES = 32
"""Draws that a mean and a deviation are taken of."""


class BeliefQNetwork(QNetwork):
    """Q(s, .) by H heads on one trunk; the other arguments are those of `QNetwork`.

    In training mode uncertain weights are drawn, in evaluation mode they are their means.

    Args:
        dueling: Q = V + A - mean A, with a head for each (Wang et al., 2016, eq. 9).
        uncertainty: see `QPolicy`.
        uncertainty_kwargs: see `QPolicy`.
    """

    def __init__(
        self,
        *args: Any,
        dueling: bool = False,
        uncertainty: str = "none",
        uncertainty_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.uncertainty = uncertainty
        self.n_heads = count_heads(uncertainty, uncertainty_kwargs)
        linear = make_linear(uncertainty, uncertainty_kwargs or {})
        widths = [self.features_dim, *self.net_arch]
        layers = [(linear(*sizes), self.activation_fn()) for sizes in pairwise(widths)]
        self.q_net = nn.Sequential(*(part for layer in layers for part in layer))  # the trunk
        self.advantages = linear(widths[-1], self.n_heads * count_acts(self.action_space))
        self.values = linear(widths[-1], self.n_heads) if dueling else None

    def forward(self, obs: Any) -> Tensor:
        """(n, A): the mean of the heads, of observations (n, ...)."""
        return self.q_values(obs).mean(0)

    def q_values(self, obs: Any, copies: int = 1) -> Tensor:
        """(copies * H, n, A): Q of every act, by each head; in training mode each copy is drawn."""
        features = self.extract_features(obs, self.features_extractor)
        hidden = self.q_net(features.expand(copies, *features.shape))
        q = self.advantages(hidden).unflatten(-1, (self.n_heads, -1))  # (copies, n, H, A)
        if self.values is not None:
            q = q - q.mean(-1, keepdim=True) + self.values(hidden)[..., None]
        return q.transpose(1, 2).flatten(0, 1)

    @torch.no_grad()
    def draws(self, obs: Any, count: int = 1) -> Tensor:
        """(count, n, A): Q by drawn weights; of a bootstrapped network (H, n, A), each head's."""
        with in_mode(self, training=True):
            return self.q_values(obs, 1 if self.uncertainty == "bootstrap" else count)

    def divergence(self) -> Tensor | float:
        """(): of the weights from their prior; 0 where they have none."""
        layers = [layer for layer in self.modules() if isinstance(layer, VARIATIONAL)]
        return sum((layer.divergence() for layer in layers), start=0.0)


def count_heads(
    uncertainty: str = "none", uncertainty_kwargs: Mapping[str, Any] | None = None, **_: Any
) -> int:
    """H, of the network that `QPolicy` makes of these arguments."""
    return (uncertainty_kwargs or {}).get("n_heads", 10) if uncertainty == "bootstrap" else 1


@contextmanager
def in_mode(module: nn.Module, training: bool) -> Iterator[None]:
    """Put a module into training or evaluation mode within the block."""
    before = module.training
    module.train(training)
    try:
        yield
    finally:
        module.train(before)


class QPolicy(DQNPolicy):
    """`DQNPolicy` of Stable-Baselines3 with masks and uncertainty.

    Args:
        observation_space, action_space, lr_schedule: as of that class.
        dueling: see `BeliefQNetwork`.
        uncertainty: "none"; "noisy", NoisyNet; "dropout"; "concrete" dropout; "bootstrap", several
            heads; or "bayes", Gaussian weights. All but the first explore by Thompson sampling:
            acts are the best by weights that are drawn, or by a head that is drawn for a dialogue.
        uncertainty_kwargs: settings of its layers, see `agents.acts.uncertain_layers`; of
            "bootstrap" `n_heads`, 10.
        test_samples: draws of the weights that a deterministic choice takes the mean of; 0 takes
            the mean weights instead.
        curiosity: settings of `Curiosity`, an intrinsic reward; None for none.
        kwargs: the other arguments of that class, such as `net_arch`.

    Raises:
        ValueError: there is no such kind of uncertainty, or it has no such setting.
    """

    q_net: BeliefQNetwork
    q_net_target: BeliefQNetwork
    curiosity: Curiosity | None

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        dueling: bool = False,
        uncertainty: str = "none",
        uncertainty_kwargs: Mapping[str, Any] | None = None,
        test_samples: int = 0,
        curiosity: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.own: dict[str, Any] = {
            "dueling": dueling,
            "uncertainty": uncertainty,
            "uncertainty_kwargs": dict(uncertainty_kwargs or {}),
        }
        self.test_samples, self.curiosity_settings = test_samples, curiosity
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        self.curiosity = None
        if self.curiosity_settings is not None:
            sizes = self.q_net.features_dim, count_acts(self.action_space)
            make = partial(Curiosity, *sizes)
            self.curiosity = with_settings(make, "curiosity", self.curiosity_settings)
            self.optimizer.add_param_group({"params": [*self.curiosity.parameters()]})

    def make_q_net(self) -> BeliefQNetwork:
        """A network of its own."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return BeliefQNetwork(**arguments, **self.own).to(self.device)

    @property
    def is_uncertain(self) -> bool:
        """Return True if Q is known with an uncertainty."""
        return self.q_net.uncertainty != "none"

    @property
    def is_variational(self) -> bool:
        """Return True if weights have a prior, and a divergence from it."""
        return self.q_net.uncertainty in ("bayes", "concrete")

    # Acting

    @torch.no_grad()
    def greedy(self, obs: Any, masks: np.ndarray) -> np.ndarray:
        """(n,): the best acts by the mean of Q, within masks (n, A)."""
        q = self._tested(obs) if self.test_samples and self.is_uncertain else self.q_net(obs)
        return masked(q, masks).argmax(1).cpu().numpy()

    def _tested(self, obs: Any) -> Tensor:
        """(n, A): the mean over `test_samples` draws, the same at each call and in each row."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(0)
            found: Tensor = torch.vmap(self._mean_of_draws, randomness="same")(obs)
        return found

    def _mean_of_draws(self, one: Tensor) -> Tensor:
        return self.q_net.draws(one[None], self.test_samples).mean(0)[0]

    @torch.no_grad()
    def explore(
        self, obs: Any, masks: np.ndarray, rate: float, heads: np.ndarray | None = None
    ) -> np.ndarray:
        """(n,): acts at random with probability `rate`, else the best by Q that is drawn.

        Args:
            obs: observations (n, ...).
            masks: (n, A) bool.
            rate: epsilon, of each row for itself.
            heads: (n,) that a bootstrapped network acts by; None draws them.
        """
        draws = self.q_net.draws(obs)
        if heads is None:
            heads = random_below(len(draws), len(masks))
        own = draws[torch.as_tensor(heads), torch.arange(len(masks))]
        acts = masked(own, masks).argmax(1).cpu().numpy()
        if not rate:
            return acts
        return np.where(uniform(len(masks)) < rate, random_acts(masks), acts)

    def q_distribution(self, obs: np.ndarray, samples: int = SAMPLES) -> tuple[np.ndarray, ...]:
        """Mean and standard deviation, each (n, A) float32, of Q at observations (n, ...).

        Raises:
            ValueError: the network has no uncertainty.
        """
        if not self.is_uncertain:
            raise ValueError(
                "q_distribution: this network has no uncertainty; give the policy another one than "
                "'none', such as policy_kwargs={'uncertainty': 'bootstrap'}"
            )
        seen, _ = self.obs_to_tensor(obs)
        draws = self.q_net.draws(seen, samples)
        return draws.mean(0).cpu().numpy(), draws.std(0).cpu().numpy()

    def predict(  # type: ignore[override]
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
        rate: float = 0.0,
    ) -> tuple[np.ndarray, Any]:
        """Acts within masks: the best, or, where that is not asked for, as `explore` has them."""
        self.set_training_mode(False)
        seen, vectorized = self.obs_to_tensor(observation)
        masks = fitting(action_masks, len(seen), self.action_space)
        acts = self.greedy(seen, masks) if deterministic else self.explore(seen, masks, rate)
        return (acts if vectorized else acts[0]), state

    def _get_constructor_parameters(self) -> dict[str, Any]:
        more = {"test_samples": self.test_samples, "curiosity": self.curiosity_settings}
        return {**super()._get_constructor_parameters(), **self.own, **more}
