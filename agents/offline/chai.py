"""CHAI: conservative Q-learning over replies that a frozen language model proposes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.sequences import Part, Sequences
from agents.buffers.stored_utterances import spread
from agents.decoding.generation import (
    Prompts,
    Utterances,
    room_of,
    sample_utterances,
)
from agents.models.prefixes import lengths_of
from agents.offline.losses import bellman_target, following
from agents.offline.utterance_ilql import UtteranceAlgorithm
from agents.policies.utterance import UtteranceGPTPolicy
from agents.updater import Loss


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
                "share_features_extractor=False"
            )

    def worth(self, prompts: Prompts, said: Utterances) -> Tensor:
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
        samples: replies that the clone proposes in each state, anew each step.
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
        **kwargs: Any,
    ) -> None:
        least = {"clone_steps": 0, "samples": 1, "random_samples": 0}
        numbers = {"clone_steps": clone_steps, "samples": samples, "random_samples": random_samples}
        for name, number in numbers.items():
            if number < least[name]:
                raise ValueError(f"CHAI: {name} must be at least {least[name]}, got {number}")
        self.clone_steps = clone_steps
        self.samples, self.random_samples = samples, random_samples
        self.cql_weight = cql_weight
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        networks = (self.policy.backbone, self.policy.policy_head)
        self._language = [p for n in networks for p in n.parameters() if p.requires_grad]

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_language"]

    @property
    def cloning(self) -> bool:
        """Whether the next gradient step is one of the language model."""
        return self._n_updates < self.clone_steps

    def _learn_from(self, rows: np.ndarray) -> None:
        for weight in self._language:
            weight.requires_grad_(self.cloning)
        super()._learn_from(rows)

    def _loss_of(self, sequences: Sequences) -> Loss:
        return self._clone_loss_of(sequences) if self.cloning else self._q_loss_of(sequences)

    def _clone_loss_of(self, sequences: Sequences) -> Loss:
        ratio = self._utterances_per_token(sequences)

        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            said = sequences.columns["said"][part.rows]
            with self.updater.precision():
                hidden = self.policy.backbone(part.tokens, part.at)
            log_prob = self._log_probs_said(sequences, part, hidden, said)
            return spread(-ratio * log_prob, said), {}

        return loss_of

    def _q_loss_of(self, sequences: Sequences) -> Loss:
        rng = np.random.default_rng([self.seed or 0, self.processes.rank, self._n_updates])

        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            columns = {name: values[part.rows] for name, values in sequences.columns.items()}
            with torch.no_grad(), self.updater.precision():
                sums = running_sums(self.policy.backbone(part.tokens)).flatten(0, 1)[part.at]
                proposed = self._proposals(part, columns, rng)
            lengths = part.at % part.tokens.shape[1] + 1
            begins = columns["begins"]
            features = mean_hidden(sums[begins], lengths[begins], proposed)
            return self._losses(columns, sums / lengths[:, None], features)

        return loss_of

    def _proposals(
        self, part: Part, columns: dict[str, Tensor], rng: np.random.Generator
    ) -> Utterances:
        """Replies (b, samples + random_samples, K) in each state where an utterance begins."""
        prompts = prompts_within(self.policy, part, columns)
        count = self.samples + self.random_samples
        numbers = rng.random((len(prompts), count, int(prompts.room.max(initial=1))))
        uniform = torch.from_numpy(numbers).to(self.device)
        return sample_utterances(
            self.policy, prompts, count, uniform, self.random_samples, keep_hidden=True
        )

    def _losses(
        self, columns: dict[str, Tensor], means: Tensor, features: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses (n,) and figures, from mean hidden states (n, d) and of proposals (b, k, d)."""
        ends, begins = columns["real"], columns["begins"]
        q = self.policy.q_values(means[ends])[..., 0]  # (2, m)
        best = self.policy.target_q(features[:, : self.samples])[..., 0].amax(1)  # (b,)
        v = spread(best, begins)
        targets = bellman_target(
            columns["rewards"][ends], following(v)[ends], columns["goes_on"][ends], self.gamma
        )
        others = self.policy.q_values(features[columns["said"][begins]])[..., 0]  # (2, m, k)
        cql_loss = torch.cat([q[..., None], others], -1).logsumexp(-1) - q
        parts = {
            "q_loss": spread((targets - q).square().sum(0), ends),
            "cql_loss": spread(cql_loss.sum(0), ends),
        }
        loss = parts["q_loss"] + self.cql_weight * parts["cql_loss"]
        return loss, {**parts, "q": spread(q.mean(0), ends), "v": v * columns["said"]}


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


@torch.no_grad()
def prompts_within(policy: CHAIPolicy, part: Part, columns: dict[str, Tensor]) -> Prompts:
    """The beginnings of sequences at which an utterance begins; each sequence is read once."""
    tokens, begins = part.tokens, columns["begins"]
    ends = lengths_of(tokens)
    cache, counts = policy.backbone.new_cache(len(tokens)), ends.cpu().numpy()
    inside = torch.arange(tokens.shape[1], device=tokens.device) < ends[:, None]
    policy.backbone.extend(tokens[inside], counts, cache, np.arange(len(tokens)))
    at = part.at[begins]
    rows, lengths = at // tokens.shape[1], at % tokens.shape[1] + 1
    seen = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
    known = lengths.cpu().numpy()
    states = columns.get("states")
    return Prompts(
        tokens[rows] * seen,
        known,
        policy.backbone(tokens, at),
        cache,
        rows.cpu().numpy(),
        np.zeros_like(known) if states is None else states[begins].cpu().numpy(),
        room_of(policy, known, np.zeros_like(known), policy.decoding.max_tokens),
    )
