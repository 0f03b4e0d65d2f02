"""FeudalGain: sub-policies of slots are rewarded for what they learn about the user's goal."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.acts.dqn import DQNOptions
from agents.acts.feudal.dqn import FeudalDQN
from agents.acts.feudal.hierarchy import REQUEST_INFO
from agents.buffers.masked_replay import Transitions
from agents.models.act_masks import masked
from agents.models.heads import chosen
from dialgym.tasks import BeliefStructure


class FeudalGain(FeudalDQN):
    """Feudal DQN with information gain: Geishauser et al. (2021), arXiv 2109.07129.

    An act about a slot changes what is believed of the slot. Where the Jensen-Shannon divergence of
    its block, of before and after, is above a threshold, the sub-policy of slots is rewarded in
    addition to the rewards of the env, so that a turn of -1 counts +1. It is learned for itself, as
    if only slots were talked about. The master and the general sub-policy learn from the rewards of
    the env alone; where the master's next choice is a slot, they bootstrap on its own value.

    Networks are dueling NoisyNets, which explore, as in the paper; `policy_kwargs` can say others.
    (The paper's own have ACER for the master and the general sub-policy.)

    Args:
        policy, env: as of `FeudalDQN`.
        gain_reward: what a gain is worth.
        gain_threshold: the divergence, in bits, above which there is one.
        exploration_initial_eps, exploration_final_eps: as of `DQN`.
        kwargs: further arguments of `FeudalDQN`.

    Raises:
        ValueError: as of `FeudalDQN`; or `n_steps` are more than one, over which the belief in
            several slots changes.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        gain_reward: float = 2.0,
        gain_threshold: float = 0.2,
        exploration_initial_eps: float = 0.0,
        exploration_final_eps: float = 0.0,
        **kwargs: Unpack[DQNOptions],
    ) -> None:
        if kwargs.get("n_steps", 1) > 1:
            raise ValueError(f"FeudalGain: expected n_steps=1, got {kwargs['n_steps']}")
        self.gain_reward, self.gain_threshold = gain_reward, gain_threshold
        given = kwargs.get("policy_kwargs") or {}
        kwargs["policy_kwargs"] = {"dueling": True, "uncertainty": "noisy", **given}
        super().__init__(
            policy,
            env,
            exploration_initial_eps=exploration_initial_eps,
            exploration_final_eps=exploration_final_eps,
            **kwargs,
        )

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """(2, n): see `FeudalDQN`."""
        tree = self.q_net.q_net.hierarchy
        following, judge = self._following(batch)
        branches, _ = self.q_net.q_net.choose(judge, batch.next_masks)
        masters = batch.rewards + batch.discounts * chosen(following.master, branches)
        only_slots = tree.branches == REQUEST_INFO
        best = masked(judge.acts, batch.next_masks & only_slots).argmax(1)
        # Where no act about a slot is allowed next, there is no more to gain.
        more = (
            (batch.next_masks & only_slots).any(1) * batch.discounts * chosen(following.acts, best)
        )
        gain = information_gain(
            self.structure, batch.observations, batch.next_observations, tree.slots[batch.actions]
        )
        gained = self.reward_scale * self.gain_reward * (gain > self.gain_threshold)
        about_slots = tree.branches[batch.actions] == REQUEST_INFO
        acts = torch.where(about_slots, batch.rewards + gained + more, masters)
        return torch.stack((masters, acts))


def information_gain(
    structure: BeliefStructure, before: Tensor, after: Tensor, slots: Tensor
) -> Tensor:
    """(n,): the Jensen-Shannon divergence, in bits, of what is believed of a slot.

    Args:
        structure: of the beliefs.
        before, after: beliefs (n, B).
        slots: (n,) int64, of each pair of beliefs the slot in question, by its number in `asked`.
    """
    gains = [
        js_divergence(before[:, slot.start : slot.stop], after[:, slot.start : slot.stop])
        for slot in structure.asked
    ]
    return chosen(torch.stack(gains, 1), slots)


def js_divergence(p: Tensor, q: Tensor) -> Tensor:
    """(n,): the Jensen-Shannon divergence, from 0 to 1 bit, of distributions (n, V)."""
    middle = (p + q) / 2
    nats = _entropy(middle) - (_entropy(p) + _entropy(q)) / 2
    return nats / torch.log(nats.new_tensor(2.0))


def _entropy(p: Tensor) -> Tensor:
    return torch.special.entr(p.clamp(min=0.0)).sum(-1)
