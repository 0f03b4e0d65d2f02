"""Utterances of a trained agent by beam search, or by ranking samples by their advantages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from agents.decoding.beams import beam_search
from agents.decoding.generation import Prompts, Utterances, sample_utterances
from agents.decoding.sampling import Masks, Sampling
from agents.policies.gpt import GPTActorCritic
from agents.policies.utterance import Plans, first_of, numbers, prompt_of
from agents.policies.value import ValueGPTPolicy
from dialgym.errors import finite_number, whole_number
from dialgym.rollouts.episodes import seed_policy
from dialgym.rollouts.policies import training_place


class Speaker:
    """A model that says whole utterances; `predict` is as the model's own, `evaluate_policy` works.

    An utterance once begun is finished as planned, even if the model learns meanwhile.

    Args:
        model: an agent with a GPT policy.
        max_tokens: of an utterance; None lets it go on to its `<end>` or the window's.

    Raises:
        ValueError: its observations are more than windows of tokens, or a number is impossible.
    """

    learns_by_sampling = False
    candidates = 0
    """Utterances that numbers are drawn for."""

    def __init__(self, model: Any, max_tokens: int | None = None) -> None:
        self.model, self.trained_in = model, training_place(model)
        self.policy: GPTActorCritic = getattr(model, "policy", model)
        space = self.observation_space = self.policy.observation_space
        self.action_space = self.policy.action_space
        if isinstance(space, spaces.Dict):
            raise ValueError(
                f"{type(self).__name__}: expected an agent that sees tokens alone, got one that "
                f"sees {', '.join(space)}; leave beams and candidates out"
            )
        if max_tokens is not None:
            whole_number("max_tokens", max_tokens, type(self).__name__)
        self.max_tokens = max_tokens
        self.plans = Plans()

    def set_random_seed(self, seed: int) -> None:
        """Seed the model."""
        seed_policy(self.model, seed)

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
        said = self.plans.say(
            self.policy, tokens, self.choose, self.candidates, self.max_tokens, deterministic
        )
        return (said if vectorised else said[0]), state

    def utter(
        self,
        prompt: Sequence[int],
        most: int,
        sampling: Sampling,
        generator: torch.Generator,
        masks: Masks,
    ) -> list[int]:
        """The tokens of one utterance after `prompt`, as of `GPTActorCritic.utter`.

        It keeps to the masks of the observation space; `masks` are not asked.
        """
        prompts = prompt_of(self.policy, prompt, min(most, self.max_tokens or most))
        drawing = None if sampling.deterministic else generator
        return first_of(self.choose(prompts, numbers(prompts, self.candidates, drawing)))

    def choose(self, prompts: Prompts, uniform: Tensor | None) -> Utterances:
        """Utterances (B, n, K), of which the first of each dialogue is said.

        Args:
            prompts: B dialogues.
            uniform: (B, candidates, K) numbers from 0 to below 1 to draw with; None draws them from
                PyTorch's generator.
        """
        raise NotImplementedError


class BeamSpeaker(Speaker):
    """Says what a beam search finds in the policy's distribution of tokens (`Decoding` included).

    Args:
        model, max_tokens: as of `Speaker`.
        width: of the beam; 1 is greedy.
    """

    def __init__(self, model: Any, width: int = 4, max_tokens: int | None = None) -> None:
        super().__init__(model, max_tokens)
        self.width = whole_number("width", width, "BeamSpeaker")

    def choose(self, prompts: Prompts, uniform: Tensor | None) -> Utterances:
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
        ValueError: the model's policy has no values of tokens, they have a trunk of their own or
            are no advantages (Q-SFT), or a number that cannot be.
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
        of_tokens = isinstance(self.policy, ValueGPTPolicy) and self.policy.q_outputs > 1
        values = of_tokens and self.policy.decoding.of_advantages
        if not values or self.policy.value_backbone is not None:
            raise ValueError(
                "RankedSpeaker: expected an agent with values of tokens on the policy's own trunk, "
                f"as ILQL has by default, got {type(model).__name__} with "
                f"{type(self.policy).__name__}"
            )
        self.candidates = whole_number("candidates", candidates, "RankedSpeaker")
        self.advantage_weight = finite_number("advantage_weight", advantage_weight)
        self.log_prob_weight = finite_number("log_prob_weight", log_prob_weight)

    def choose(self, prompts: Prompts, uniform: Tensor | None) -> Utterances:
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
