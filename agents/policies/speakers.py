"""Utterances of a trained agent by beam search, or by ranking samples by their advantages."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.decoding.beams import beam_search
from agents.decoding.generation import Prompts, Utterances, read_prompts, sample_utterances
from agents.models.prefixes import left_aligned
from agents.policies.gpt import GPTActorCritic
from agents.policies.utterance import Plans, numbers
from agents.policies.value import ValueGPTPolicy


class Speaker:
    """A model that says whole utterances; `predict` is as the model's own, `evaluate_policy` works.

    An utterance once begun is finished as planned, even if the model learns meanwhile.

    Args:
        model: an agent with a GPT policy.
        max_tokens: of an utterance; None lets it go on to its `<end>` or the window's.
    """

    def __init__(self, model: Any, max_tokens: int | None = None) -> None:
        self.policy: GPTActorCritic = model.policy
        self.max_tokens = max_tokens
        self.plans = Plans()

    def predict(
        self,
        observation: np.ndarray,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """The next tokens (n_envs,) of observations (n_envs, L); or of one alone, (L,)."""
        self.policy.set_training_mode(False)
        tokens, vectorised = self.policy.obs_to_tensor(observation)
        assert isinstance(tokens, Tensor)

        def choose(rows: Tensor, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            prompts = read_prompts(self.policy, rows, self.max_tokens).part(new)
            said = self.choose(prompts, deterministic)
            return said.tokens[:, 0].cpu().numpy(), said.lengths[:, 0].cpu().numpy()

        with torch.no_grad():
            said = self.plans.next_tokens(left_aligned(tokens), deterministic, choose)
        return (said if vectorised else said[0]), state

    def choose(self, prompts: Prompts, deterministic: bool) -> Utterances:
        """Utterances (B, n, K), of which the first of each dialogue is said."""
        raise NotImplementedError


class BeamSpeaker(Speaker):
    """Says what a beam search finds in the policy's distribution of tokens (`Decoding` included).

    Args:
        model, max_tokens: as of `Speaker`.
        width: of the beam; 1 is greedy.
    """

    def __init__(self, model: Any, width: int = 4, max_tokens: int | None = None) -> None:
        super().__init__(model, max_tokens)
        self.width = width

    def choose(self, prompts: Prompts, deterministic: bool) -> Utterances:
        return beam_search(self.policy, prompts, self.width)


class RankedSpeaker(Speaker):
    """Says the best of some utterances by summed advantages and log-probability.

    They are drawn from the policy's distribution of tokens and ranked by
    advantage_weight sum_t A_t + log_prob_weight log p, A_t = min target Q - V (Snell et al. 2022).
    Sums end where the utterance ends; in the published code they go on.

    Args:
        model: an agent with values of tokens (`ValueGPTPolicy`) and one trunk for them and speech.
        candidates: how many are drawn.
        advantage_weight, log_prob_weight: as above.
        max_tokens: as of `Speaker`.

    Raises:
        ValueError: the model's policy has no values of tokens, or they have a trunk of their own.
    """

    policy: ValueGPTPolicy

    def __init__(
        self,
        model: Any,
        candidates: int = 8,
        advantage_weight: float = 1.0,
        log_prob_weight: float = 0.0,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(model, max_tokens)
        values = isinstance(self.policy, ValueGPTPolicy) and self.policy.q_outputs > 1
        if not values or self.policy.value_backbone is not None:
            raise ValueError(
                "RankedSpeaker: expected an agent with values of tokens on the policy's own trunk, "
                f"as ILQL has by default, got {type(model).__name__} with "
                f"{type(self.policy).__name__}"
            )
        self.candidates = candidates
        self.advantage_weight, self.log_prob_weight = advantage_weight, log_prob_weight

    def choose(self, prompts: Prompts, deterministic: bool) -> Utterances:
        uniform = numbers(prompts, self.candidates) if deterministic else None
        drawn = sample_utterances(self.policy, prompts, self.candidates, uniform, keep_hidden=True)
        advantages = self.advantage_weight * summed_advantages(self.policy, prompts, drawn)
        order = (advantages + self.log_prob_weight * drawn.log_prob).argsort(1, descending=True)
        rows = torch.arange(len(order), device=order.device)[:, None]
        return Utterances(
            drawn.tokens[rows, order], drawn.lengths[rows, order], drawn.log_probs[rows, order]
        )


@torch.no_grad()
def summed_advantages(policy: ValueGPTPolicy, prompts: Prompts, said: Utterances) -> Tensor:
    """Sums (B, n) of min target Q - V over the tokens of utterances with hidden states."""
    assert said.hidden is not None
    first = prompts.hidden[:, None, None].expand(-1, said.tokens.shape[1], -1, -1)
    before = torch.cat([first, said.hidden[:, :, :-1]], 2).flatten(0, 2)  # (B n K, d)
    advantages = policy.target_q(before) - policy.value_head(before)
    chosen = advantages.gather(1, said.tokens.flatten()[:, None]).view_as(said.tokens)
    places = torch.arange(said.tokens.shape[2], device=chosen.device)
    return chosen.masked_fill(places >= said.lengths[..., None], 0.0).sum(-1)
