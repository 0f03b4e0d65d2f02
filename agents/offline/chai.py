"""CHAI: conservative Q-learning over replies that a frozen language model proposes."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.stored import UtteranceBatch, scattered
from agents.decoding.generation import Prompts, Utterances, sample_utterances
from agents.offline.algorithm import Losses
from agents.offline.ilql import ValueOptions
from agents.offline.losses import bellman_target, next_values
from agents.offline.utterance_ilql import UtteranceAlgorithm
from agents.policies.utterance import UtteranceGPTPolicy, prompts_within


class CHAIPolicy(UtteranceGPTPolicy):
    """`UtteranceGPTPolicy` whose Q heads read the mean of all hidden states so far.

    Values teach the language model nothing, so one trunk serves both.

    Args:
        args, kwargs: as of `UtteranceGPTPolicy`.

    Raises:
        ValueError: values are to have a trunk of their own.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.value_backbone is not None:
            raise ValueError(
                "CHAIPolicy: values read the frozen language model; leave out "
                "share_features_extractor"
            )

    def utterance_q(self, prompts: Prompts, said: Utterances) -> Tensor:
        """min target Q (B, n) of utterances whose hidden states were kept."""
        tokens = prompts.tokens[:, : int(prompts.lengths.max())]
        sums = running_sums(self.backbone(tokens))
        ends = torch.from_numpy(prompts.lengths).to(tokens.device)
        rows = torch.arange(len(ends), device=tokens.device)
        means = mean_hidden(sums[rows, ends - 1], ends, said)
        return self.target_q(means.flatten(0, 1)).view_as(said.lengths)


class CHAI(UtteranceAlgorithm):
    """Q-learning of utterances over a frozen clone (Verma et al. 2022), in the form of Snell et al.

    With f the mean of the clone's hidden states up to an utterance's end, both Q(s, u) = Q(f)
    regress to r(u) + gamma max_i min target Q(s', u_i) over replies u_i that the clone proposes
    in s'. The conservative regulariser is the cross-entropy of what was said among itself, the
    proposals and utterances of random tokens, under softmax Q: CQL's logsumexp Q - Q(s, u)
    (Kumar et al. 2020, equation 4) by samples, without importance weights. The agent says the
    best of its candidates by min target Q (`UtteranceDecoding`).

    The language model first learns by cloning, for `clone_steps` gradient steps, and is frozen
    from then on; with `clone_steps=0` it is what `agents.start_from` made it. Where the published
    code errs this one does not: random utterances are utterances, not random vectors, rewards keep
    their fractions, and a dialogue that a limit cut off is worth what may follow.

    Args:
        policy: `CHAIPolicy`, or "GPTPolicy", which names it here.
        env, dataset: as of `OfflineAlgorithm`.
        clone_steps: gradient steps of cloning, of those that `learn` counts.
        samples: replies that the clone proposes in each state, again each step.
        random_samples: of random tokens in each state, for the regulariser.
        cql_weight: of the regulariser.
        kwargs: further arguments of `UtteranceAlgorithm`.

    Raises:
        ValueError: a number that cannot be, or as of `OfflineAlgorithm`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": CHAIPolicy}
    policy: CHAIPolicy

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        clone_steps: int = 1000,
        samples: int = 5,
        random_samples: int = 5,
        cql_weight: float = 0.1,
        **kwargs: Unpack[ValueOptions],
    ) -> None:
        self.clone_steps = clone_steps
        self.samples, self.random_samples = samples, random_samples
        self.cql_weight = cql_weight
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        networks = (self.policy.backbone, self.policy.policy_head)
        self._language = [p for n in networks for p in n.parameters() if p.requires_grad]
        self._seed_proposals()

    def _seed_proposals(self) -> None:
        """Proposals follow from seed, process and gradient step, so that a resumed run is exact."""
        self.rng = np.random.default_rng([self.seed or 0, self.processes.rank, self._n_updates])

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_language", "rng"]

    @property
    def cloning(self) -> bool:
        """Return True if the next gradient step is one of the language model."""
        return self._n_updates < self.clone_steps

    def gradient_step(self, rows: np.ndarray) -> dict[str, float]:
        """As of `ValueAlgorithm`; of the language model, or else of the Q heads alone."""
        for weight in self._language:
            weight.requires_grad_(self.cloning)
        self._seed_proposals()
        return super().gradient_step(rows)

    def loss(self, batch: UtteranceBatch) -> Losses:
        if self.cloning:
            hidden = self.policy.backbone(batch.observations, batch.at)
            return self.clone_loss(batch, hidden), {}
        with torch.no_grad():
            sums = running_sums(self.policy.backbone(batch.observations))
            sums = sums.flatten(0, 1)[batch.at]  # (n, d)
            proposed = self.propose(batch)
        lengths = batch.at % batch.observations.shape[1] + 1
        features = mean_hidden(sums[batch.begins], lengths[batch.begins], proposed)
        return self.q_loss(batch, sums / lengths[:, None], features)

    def propose(self, batch: UtteranceBatch) -> Utterances:
        """Replies (b, samples + random_samples, K) in each state where an utterance begins.

        They are drawn with numbers of `rng`, the last of them of random tokens.
        """
        prompts = prompts_within(self.policy, batch, batch.begins)
        count = self.samples + self.random_samples
        numbers = self.rng.random((len(prompts), count, int(prompts.room.max(initial=1))))
        uniform = torch.from_numpy(numbers).to(self.device)
        return sample_utterances(
            self.policy, prompts, count, uniform, self.random_samples, keep_hidden=True
        )

    def q_loss(self, batch: UtteranceBatch, means: Tensor, features: Tensor) -> Losses:
        """Losses of the Q heads, from mean hidden states (n, d) and of proposals (b, k, d)."""
        begins, ends = batch.begins, batch.ends
        q = self.policy.q_values(means[ends])[..., 0]  # (2, m)
        best = self.policy.target_q(features[:, : self.samples])[..., 0].amax(1)  # (b,)
        v = scattered(best, begins)
        targets = bellman_target(
            batch.rewards[ends], next_values(v)[ends], batch.not_done[ends], self.gamma
        )
        others = self.policy.q_values(features[batch.is_action[begins]])[..., 0]  # (2, m, k)
        cql_loss = torch.cat([q[..., None], others], -1).logsumexp(-1) - q
        losses = {
            "q_loss": scattered((targets - q).square().sum(0), ends),
            "cql_loss": scattered(cql_loss.sum(0), ends),
        }
        loss = losses["q_loss"] + self.cql_weight * losses["cql_loss"]
        return loss, {**losses, "q": scattered(q.mean(0), ends), "v": v * batch.is_action}


def running_sums(hidden: Tensor) -> Tensor:
    """Sums (B, T, d) of hidden states (B, T, d) up to each token."""
    return hidden.float().cumsum(1)


def mean_hidden(sums: Tensor, lengths: Tensor, said: Utterances) -> Tensor:
    """Means (B, n, d) of the hidden states of dialogues and the utterances that follow them.

    Args:
        sums: (B, d) over the tokens of each dialogue.
        lengths: (B,) how many they are.
        said: (B, n, K), with hidden states.
    """
    assert said.hidden is not None
    total: Tensor = sums[:, None] + said.hidden.sum(2)
    return total / (lengths[:, None] + said.lengths)[..., None]
