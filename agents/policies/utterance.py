"""A GPT policy with Q values of whole utterances: the best of some samples, said token by token."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.type_aliases import PyTorchObs
from torch import Tensor

from agents.buffers.stored import UtteranceBatch
from agents.decoding.generation import (
    Prompts,
    Utterances,
    read_prompts,
    room_of,
    sample_utterances,
)
from agents.decoding.sampling import Masks, Sampling
from agents.models.observations import Observed
from agents.models.prefixes import left_aligned, lengths_of
from agents.policies.gpt import MASK_TYPES, GPTActorCritic
from agents.policies.value import Decoding, ValueGPTPolicy
from dialgym.errors import finite_number, whole_number

Choose = Callable[[Tensor, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From observations (B, L) and the rows (r,) in question to tokens (r, K) and lengths (r,)."""


@dataclass
class UtteranceDecoding(Decoding):
    """Settings by which whole utterances are chosen: the best of some candidates.

    Candidates are drawn from the cloned policy, with `temperature`, `policy_top_k` and so on as in
    `Decoding`. The best has the greatest min target Q + log_prob_weight log p, p being its
    probability as it was drawn. Set `model.policy.decoding` to change it.

    Attributes:
        candidates: how many are drawn.
        log_prob_weight: of the log-probability.
        max_tokens: of an utterance; None lets it go on to its `<end>` or the window's. The
            algorithms fill in the task's limit.

    Raises:
        ValueError: a number that cannot be, or an advantage of single tokens is asked for.
    """

    candidates: int = 8
    log_prob_weight: float = 0.0
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("candidates", self.candidates, "decoding")
        finite_number("log_prob_weight of decoding", self.log_prob_weight)
        if self.max_tokens is not None:
            whole_number("max_tokens", self.max_tokens, "decoding")
        if self.beta or self.advantage_clip is not None:
            raise ValueError(
                "decoding: beta and advantage_clip are for advantages of single tokens, this "
                "policy has values of whole utterances; leave them out and give candidates"
            )


MOST_PLANS = 3
"""Batches whose plans are kept."""


class Plans:
    """The utterance under way in each row of a batch, valid while its observations agree.

    An observation that is the last one and the token that was said goes on with its plan; any
    other (a reset, another env in between, the same one once more) makes a new one, perhaps of
    the rest of an utterance. So what else is asked of a policy costs time and never sense.
    """

    def __init__(self) -> None:
        self.plans: OrderedDict[Hashable, UtteranceBatchPlan] = OrderedDict()

    def next_tokens(self, tokens: Tensor, key: Hashable, choose: Choose) -> np.ndarray:
        """The next tokens (B,) of observations (B, L), left-aligned.

        Plans are kept apart by the shape of the batch and the `key`.
        """
        key = (*tokens.shape, key)
        if key not in self.plans:
            self.plans[key] = UtteranceBatchPlan(*tokens.shape)
        self.plans.move_to_end(key)
        while len(self.plans) > MOST_PLANS:
            self.plans.popitem(last=False)
        return self.plans[key].next_tokens(tokens, choose)

    def say(
        self,
        policy: Any,
        tokens: Tensor,
        best_of: Callable[[Prompts, Tensor | None], Utterances],
        candidates: int,
        most: int | None,
        deterministic: bool,
    ) -> np.ndarray:
        """The next tokens (B,) of utterances that are chosen as a whole.

        All rows are read where some begin, since later plans will need them read anyway.

        Args:
            policy: reads the observations.
            tokens: (B, L), the observations.
            best_of: from prompts, and numbers to draw with or None, to utterances of which the
                first of each dialogue is said.
            candidates: utterances that numbers are drawn for.
            most: tokens of an utterance; None for no limit.
            deterministic: draw with numbers that follow from the observations.
        """

        def choose(rows: Tensor, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            prompts = read_prompts(policy, rows, most).select(new)
            uniform = numbers(prompts, candidates) if deterministic else None
            chosen = best_of(prompts, uniform)
            return chosen.tokens[:, 0].cpu().numpy(), chosen.lengths[:, 0].cpu().numpy()

        with torch.no_grad():
            return self.next_tokens(left_aligned(tokens), deterministic, choose)

    def forget(self) -> None:
        """Call when the policy changed."""
        self.plans.clear()


class UtteranceBatchPlan:
    """The utterances of the rows of one batch."""

    def __init__(self, rows: int, window: int) -> None:
        self.expected = np.zeros((rows, window + 1), np.int64)  # observations when all is said
        self.asked = np.zeros(rows, np.int64)  # tokens of the last observation
        self.ends = np.zeros(rows, np.int64)  # tokens of `expected`

    def next_tokens(self, tokens: Tensor, choose: Choose) -> np.ndarray:
        """See `Plans`."""
        seen, lengths = tokens.cpu().numpy(), lengths_of(tokens).cpu().numpy()
        new = np.flatnonzero(~self._followed(seen, lengths))
        if len(new):
            said, counts = choose(tokens, new)
            self.expected[new] = 0
            self.expected[new, : seen.shape[1]] = seen[new]
            places = lengths[new, None] + np.arange(said.shape[1])
            inside = (np.arange(said.shape[1]) < counts[:, None]) & (
                places < self.expected.shape[1]
            )
            self.expected[np.repeat(new, inside.sum(1)), places[inside]] = said[inside]
            self.ends[new] = np.minimum(lengths[new] + counts, self.expected.shape[1])
        self.asked[:] = lengths
        return self.expected[np.arange(len(seen)), lengths]

    def _followed(self, seen: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Find the rows (B,) that are at the next token of their plan."""
        beyond = np.arange(seen.shape[1]) >= lengths[:, None]
        same = ((self.expected[:, : seen.shape[1]] == seen) | beyond).all(1)
        return same & (lengths == self.asked + 1) & (lengths < self.ends)


class UtteranceGPTPolicy(ValueGPTPolicy):
    """A GPT with two scalar Q heads, read after an utterance, that says the best of some.

    `predict` chooses a whole utterance where one begins, and then says it. With `deterministic`
    the candidates are drawn with numbers that follow from the observation alone: the same
    observation gives the same utterance, in any batch and process. `get_distribution` and the
    like are of the cloned policy.

    Args:
        decoding: arguments of `UtteranceDecoding`.
        args, kwargs: as of `GPTPolicy`.
    """

    decoding: UtteranceDecoding
    decoding_class = UtteranceDecoding

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plans = Plans()

    @property
    def q_outputs(self) -> int:
        return 1

    def set_training_mode(self, mode: bool) -> None:
        if mode:
            self.plans.forget()
        super().set_training_mode(mode)

    def _predict(
        self,
        observation: PyTorchObs,
        deterministic: bool = False,
        action_masks: MASK_TYPES | None = None,
    ) -> Tensor:
        tokens, own = Observed.of(observation).tokens.to(self.device), self.decoding
        said = self.plans.say(
            self, tokens, self.best_of, own.candidates, own.max_tokens, deterministic
        )
        chosen = torch.from_numpy(said).to(self.device)
        return chosen if action_masks is None else self._within(chosen, observation, action_masks)

    def _within(self, chosen: Tensor, observation: PyTorchObs, masks: MASK_TYPES) -> Tensor:
        """Tokens (B,) of plans; where masks (B, V) forbid one, the likeliest that is allowed.

        The next observation does not go on with such a plan, so that the rest is planned anew.
        """
        allowed = torch.as_tensor(masks, device=self.device).bool().view(len(chosen), -1)
        fits = allowed.gather(1, chosen[:, None])[:, 0]
        if bool(fits.all()):
            return chosen
        return torch.where(fits, chosen, self.get_distribution(observation, masks).mode())

    def utter(
        self,
        prompt: Sequence[int],
        most: int,
        sampling: Sampling,
        generator: torch.Generator,
        masks: Masks,
    ) -> list[int]:
        """The tokens of the best of some candidates, which `sampling` says how to draw.

        They keep to the masks of the observation space; `masks` are not asked.
        """
        prompts = prompt_of(self, prompt, most)
        drawing = None if sampling.deterministic else generator
        with self._drawn_by(sampling):
            uniform = numbers(prompts, self.decoding.candidates, drawing)
            return first_of(self.best_of(prompts, uniform))

    @contextmanager
    def _drawn_by(self, sampling: Sampling) -> Iterator[None]:
        """Draw candidates by `sampling` within the block, if it sets anything."""
        own = self.decoding
        self.decoding = replace(
            own,
            temperature=own.temperature * sampling.temperature,
            policy_top_k=sampling.top_k or own.policy_top_k,
            policy_top_p=sampling.top_p or own.policy_top_p,
        )
        try:
            yield
        finally:
            self.decoding = own

    def best_of(self, prompts: Prompts, uniform: Tensor | None = None) -> Utterances:
        """The best (B, 1, K) of the candidates; `uniform` as of `sample_utterances`."""
        drawn = sample_utterances(
            self, prompts, self.decoding.candidates, uniform, keep_hidden=True
        )
        scores = self.utterance_q(prompts, drawn) + self.decoding.log_prob_weight * drawn.log_prob
        best = scores.argmax(1, keepdim=True)
        rows = torch.arange(len(best), device=best.device)[:, None]
        return Utterances(
            drawn.tokens[rows, best], drawn.lengths[rows, best], drawn.log_probs[rows, best]
        )

    def utterance_q(self, prompts: Prompts, said: Utterances) -> Tensor:
        """min target Q (B, n) of utterances whose hidden states were kept."""
        if self.target_backbone is None:
            return self.target_q(last_of(said).flatten(0, 1)).view_as(said.lengths)
        tokens, at = continued(prompts, said)
        return self.target_q(self.target_backbone(tokens, at)).view_as(said.lengths)


def last_of(said: Utterances) -> Tensor:
    """Hidden states (B, n, d) after the last token of each utterance."""
    assert said.hidden is not None
    last = (said.lengths - 1)[..., None, None].expand(-1, -1, 1, said.hidden.shape[3])
    return said.hidden.gather(2, last)[:, :, 0]


def continued(prompts: Prompts, said: Utterances) -> tuple[Tensor, Tensor]:
    """The dialogues with each utterance (B n, T), and the flat places (B n,) of their ends."""
    starts = torch.from_numpy(prompts.lengths).to(said.tokens.device)[:, None]
    ends = starts + said.lengths  # (B, n)
    window = prompts.tokens.shape[1]
    length = min(int(ends.max()), window)
    tokens = prompts.tokens[:, None].expand(-1, said.tokens.shape[1], -1).clone()
    places = starts[..., None] + torch.arange(said.tokens.shape[2], device=starts.device)
    inside = (places < ends[..., None]) & (places < window)  # (B, n, K)
    tokens.flatten(0, 1)[_owner(inside), places.expand_as(inside)[inside]] = said.tokens[inside]
    rows = torch.arange(ends.numel(), device=ends.device)
    return tokens.flatten(0, 1)[:, :length], rows * length + ends.flatten().clamp(max=length) - 1


@torch.no_grad()
def prompts_within(
    policy: UtteranceGPTPolicy, batch: UtteranceBatch, where: Tensor, trunk: Any = None
) -> Prompts:
    """The beginnings of dialogues that end at the places `where` (n,); each dialogue is read once.

    Args:
        policy: speaks after them.
        batch: n places.
        where: (n,) bool, those at which an utterance begins.
        trunk: that reads them; None is the policy's.
    """
    trunk = policy.backbone if trunk is None else trunk
    tokens = batch.observations
    ends = lengths_of(tokens)
    cache, counts = trunk.new_cache(len(tokens)), ends.cpu().numpy()
    inside = torch.arange(tokens.shape[1], device=tokens.device) < ends[:, None]
    trunk.extend(tokens[inside], counts, cache, np.arange(len(tokens)))
    at = batch.at[where]
    rows, lengths = at // tokens.shape[1], at % tokens.shape[1] + 1
    seen = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
    known = lengths.cpu().numpy()
    states = np.zeros_like(known) if batch.states is None else batch.states[where].cpu().numpy()
    return Prompts(
        tokens[rows] * seen,
        known,
        trunk(tokens, at),
        cache,
        rows.cpu().numpy(),
        states,
        room_of(policy, known, np.zeros_like(known), policy.decoding.max_tokens),
    )


def _owner(inside: Tensor) -> Tensor:
    """The flat utterance that each set place of (B, n, K) belongs to."""
    return inside.flatten(0, 1).nonzero()[:, 0]


def prompt_of(policy: GPTActorCritic, prompt: Sequence[int], most: int) -> Prompts:
    """One dialogue, which `prompt` is all of, read by a policy that may say `most` tokens."""
    tokens = torch.zeros(1, policy.backbone.window, dtype=torch.int64, device=policy.device)
    tokens[0, : len(prompt)] = torch.tensor(list(prompt))
    return read_prompts(policy, tokens, most)


def first_of(said: Utterances) -> list[int]:
    """The tokens of the first utterance of the first dialogue."""
    tokens: list[int] = said.tokens[0, 0, : int(said.lengths[0, 0])].tolist()
    return tokens


def numbers(prompts: Prompts, count: int, generator: torch.Generator | None = None) -> Tensor:
    """Numbers (B, count, K) in [0, 1) to draw with.

    They are drawn by `generator`, which is on the CPU; without one they follow from each dialogue
    alone.
    """
    most = int(prompts.room.max(initial=1))
    if generator is not None:
        shape = (len(prompts), count, most)
        uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
        return uniform.to(prompts.hidden.device)
    rows = prompts.tokens.cpu().numpy()
    drawn = [
        np.random.default_rng(row[:length]).random((most, count))
        for row, length in zip(rows, prompts.lengths.tolist(), strict=True)
    ]
    return torch.from_numpy(np.stack(drawn).swapaxes(1, 2)).to(prompts.hidden.device)
