"""A GPT actor beside a critic of whole utterances: two Q, two V and the slow copies of all four."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor

from agents.buffers.stored import UtteranceBatch, scattered
from agents.decoding.generation import Utterances, copies
from agents.decoding.sampling import Masks, Sampling
from agents.models.build import made_head, make_optimizer
from agents.models.heads import MLPHead, log_probs_of
from agents.models.observations import Observed
from agents.policies.gpt import MASK_TYPES
from agents.policies.utterance import (
    UtteranceDecoding,
    UtteranceGPTPolicy,
    continued,
    prompts_within,
)
from agents.policies.value import QHeads, ValueGPTPolicy, follow


@dataclass
class ActorDecoding(UtteranceDecoding):
    """Settings by which an actor speaks: token by token, or with `candidates` the best by Q.

    Attributes:
        candidates: 1 says what the actor says; more take the best of so many of its utterances by
            min target Q, see `UtteranceDecoding`.
    """

    candidates: int = 1


class ArCHerPolicy(UtteranceGPTPolicy):
    """A GPT that speaks token by token, and a critic of its utterances (Zhou et al. 2024).

    Q_i(s, u) is read after an utterance u, V_i(s) before it, i = 1, 2. By default the critic has a
    trunk of its own, as there; with `share_features_extractor=True` it reads the actor's, and
    teaches it. The value head, a baseline of single tokens, reads the actor's trunk and does not
    move it.

    Args:
        args, kwargs: as of `UtteranceGPTPolicy`; `q_head` is the class of the V heads too.
        share_features_extractor: as of `GPTPolicy`.
    """

    decoding: ActorDecoding
    decoding_class = ActorDecoding

    def __init__(self, *args: Any, share_features_extractor: Any = False, **kwargs: Any) -> None:
        super().__init__(*args, share_features_extractor=share_features_extractor, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        self.v_heads = QHeads(self.critic_trunk.width, 1, self.q_head)
        self.target_v_heads = deepcopy(self.v_heads).requires_grad_(False)
        given, width = self.config["value_head"], self.backbone.width
        outputs = () if given else (1,)
        self.value_head = made_head("value_head", given, MLPHead, width, *outputs)
        self.optimizer = make_optimizer(self, lr_schedule)

    @property
    def critic_trunk(self) -> Any:
        """The backbone that Q and V are read off."""
        return self.backbone if self.value_backbone is None else self.value_backbone

    @property
    def target_trunk(self) -> Any:
        """The backbone that the slow copies are read off."""
        return self.backbone if self.target_backbone is None else self.target_backbone

    def _value_hidden(self, seen: Any, hidden: Tensor | None = None) -> Tensor:
        return self._hidden(Observed.of(seen)) if hidden is None else hidden

    def evaluate_sequences(
        self,
        tokens: Tensor,
        at: Tensor,
        actions: Tensor,
        allowed: Tensor | None = None,
        features: Tensor | None = None,
        entropy_gradient: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As of `GPTActorCritic`; values read the actor's trunk and do not move it."""
        hidden = self.backbone(tokens, at)
        log_prob, entropy = log_probs_of(
            self.policy_head, hidden, actions, allowed, entropy_gradient
        )
        return self.value_head(hidden.detach())[:, 0].clone(), log_prob.clone(), entropy

    def critic_states(self, tokens: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states (n, d) at the flat places `at` (n,), for the critic and its slow copy."""
        hidden = self.critic_trunk(tokens, at)
        if self.target_backbone is None:
            return hidden, hidden.detach()
        with torch.no_grad():
            return hidden, self.target_backbone(tokens, at)

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Polyak averaging: move the target networks towards the networks by `tau`."""
        super().update_targets(tau)
        follow(self.target_v_heads, self.v_heads, tau)

    # What whole utterances are worth

    @torch.no_grad()
    def q_of(self, batch: UtteranceBatch, where: Tensor, said: Utterances) -> Tensor:
        """(2, b): both Q of what might be `said` (b, 1, K) at the places `where` (n,)."""
        hidden = self._after(self.critic_trunk, batch, where, said)
        return self.q_values(hidden)[..., 0]

    @torch.no_grad()
    def target_q_of(self, batch: UtteranceBatch, where: Tensor, said: Utterances) -> Tensor:
        """(2, b): the slow copies of `q_of`, within the bounds."""
        hidden = self._after(self.target_trunk, batch, where, said)
        return self.value_bounds.clip(self.target_q_heads(hidden)[..., 0])

    def _after(self, trunk: Any, batch: UtteranceBatch, where: Tensor, said: Utterances) -> Tensor:
        """Hidden states (b, d) of a backbone after utterances; each dialogue is read once."""
        if not hasattr(trunk, "extend"):
            prompts = prompts_within(self, batch, where)
            return trunk(*continued(prompts, said))  # type: ignore[no-any-return]
        prompts = prompts_within(self, batch, where, trunk)
        counts = said.lengths[:, 0].cpu().numpy()
        room = trunk.window - prompts.lengths
        counts = np.minimum(counts, np.maximum(room, 1))
        cache = copies(prompts, 1, int(counts.max(initial=1)))
        places = np.arange(said.tokens.shape[2]) < counts[:, None]
        tokens = said.tokens[:, 0][torch.from_numpy(places).to(said.tokens.device)]
        found: Tensor = trunk.extend(tokens, counts, cache, np.arange(len(counts)))
        return found

    # Speech

    def _predict(
        self,
        observation: PyTorchObs,
        deterministic: bool = False,
        action_masks: MASK_TYPES | None = None,
    ) -> Tensor:
        if self.decoding.candidates == 1:
            return ValueGPTPolicy._predict(self, observation, deterministic, action_masks)
        return super()._predict(observation, deterministic, action_masks)

    def utter(
        self,
        prompt: Any,
        most: int,
        sampling: Sampling,
        generator: torch.Generator,
        masks: Masks,
    ) -> list[int]:
        """The tokens of one utterance, of the actor or the best of its candidates."""
        if self.decoding.candidates == 1:
            return ValueGPTPolicy.utter(self, prompt, most, sampling, generator, masks)
        return super().utter(prompt, most, sampling, generator, masks)


class CriticValues(NamedTuple):
    """The critic's numbers of m utterances that were said, i = 1, 2."""

    q: Tensor  # (2, m) Q_i(s, u)
    v: Tensor  # (2, m) V_i(s)
    q_targets: Tensor  # (2, m) r(u) + gamma target V_i(s'), without gradient

    @property
    def advantages(self) -> Tensor:
        """(m,): min Q - min V, without gradient (Zhou et al. 2024)."""
        return (self.q.amin(0) - self.v.amin(0)).detach()


def critic_values(
    policy: ArCHerPolicy,
    batch: UtteranceBatch,
    hidden: Tensor,
    target_hidden: Tensor,
    gamma: float,
) -> CriticValues:
    """The values of what was said in a batch of n places.

    Args:
        policy: has the heads.
        batch: n places, m utterances.
        hidden, target_hidden: (n, d), of `ArCHerPolicy.critic_states`.
        gamma: discount from one utterance to the next.
    """
    begins, ends = batch.begins, batch.ends
    with torch.no_grad():
        target_v = policy.value_bounds.clip(policy.target_v_heads(target_hidden[begins])[..., 0])
        at_begins = torch.stack([scattered(values, begins) for values in target_v])
        following = F.pad(at_begins[:, 1:], (0, 1))[:, ends]
        following = torch.where(batch.not_done[ends], following, 0.0)
        q_targets = batch.rewards[ends] + gamma * following
    return CriticValues(
        policy.q_values(hidden[ends])[..., 0],
        policy.v_heads(hidden[begins & batch.is_action])[..., 0],
        q_targets,
    )


def of_tokens(values: Tensor, batch: UtteranceBatch) -> Tensor:
    """Spread numbers (m,) of utterances to their tokens (n,), 0 elsewhere."""
    number = (batch.begins & batch.is_action).cumsum(0) - 1
    return torch.where(batch.is_action, values[number.clamp(min=0)], 0.0)
