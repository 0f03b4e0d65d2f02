"""GPT policies for the stock on-policy algorithms of Stable-Baselines3.

Two costs are gone, without a change to the algorithm. In the rollout each env row keeps its KV
cache and only new tokens are computed; in the update the observations that are beginnings of one
another share one forward. Both give what reading every observation from its start would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor

from agents.decoding.distributions import TokenDistribution
from agents.decoding.sampling import Masks, Sampling, say_tokens
from agents.models.build import build_networks, check_spaces
from agents.models.cache import weights_version
from agents.models.heads import PolicyHead
from agents.models.masking import FORBIDDEN, TokenMasker
from agents.models.prefixes import last_hidden, left_aligned, lengths_of
from agents.models.rollout_cache import RolloutCaches

MASK_TYPES = np.ndarray | Tensor


class GPTActorCritic(BasePolicy):
    """What every GPT policy shares; comes first among the bases of a policy class.

    Args:
        observation_space: `Box(0, V - 1, (L,), int)`, token ids, padded with 0 on either side;
            `learner_tag` and `automaton` are used when the space has them.
        action_space: `Discrete(V)`.
        lr_schedule: as everywhere in Stable-Baselines3.
        preset: "nano" (2 layers of 64; the default), "mini" (4 of 256) or "small" (12 of 768).
        n_layer, n_head, n_embd: replace the preset's sizes.
        pretrained: hub name or local folder of a causal language model of `transformers`, in
            place of a preset; see `agents.models.pretrained.load_backbone`. The observation space
            must have a `tokenizer`. A saved model reloads by the same name, which then gives the
            shape alone: the weights are those of the zip file.
        lora: settings of low-rank adapters, which train in place of the backbone's own weights; see
            `agents.models.lora.add_lora`. A tied policy head is frozen with the embeddings.
        init_std: deviation of the initial weights; see `GPTConfig.std` for what None gives.
        tie: the policy head shares the token embeddings, if those of a pretrained model do.
        mask: tokens that the space's automaton forbids get no probability. Masks handed in by
            the caller (MaskablePPO) are used instead of the automaton's.
        group: the update reads one sequence for all observations that are its beginnings.
        cache: the rollout keeps keys and values between steps.
        cache_rows: batches with more rows than this are read without a cache.
        share_features_extractor: the value head reads the policy's backbone; False gives it one of
            its own, with the same initial weights.
        value_head: class of the value head, or its name, in place of a linear map: made with the
            width d of hidden states and `value_head_kwargs`, it takes them (..., d) to values
            (..., 1), as `agents.models.heads.MLPHead` with `outputs: 1` does.
        value_head_kwargs: further arguments of it.
        gradient_checkpointing: compute activations twice rather than keep them.
        compile: `torch.compile` for the update; needs a C++ compiler.
        optimizer_class, optimizer_kwargs: as everywhere in Stable-Baselines3.

    Raises:
        ValueError: the spaces are not tokens in, token out.
    """

    # Set before the parent's constructor, which calls `_build`.
    config: dict[str, Any]
    action_dist: Distribution

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        preset: str | None = None,
        n_layer: int | None = None,
        n_head: int | None = None,
        n_embd: int | None = None,
        init_std: float | None = None,
        pretrained: str | None = None,
        lora: Mapping[str, Any] | None = None,
        tie: bool = True,
        mask: bool = True,
        group: bool = True,
        cache: bool = True,
        cache_rows: int = 4096,
        share_features_extractor: bool = True,
        value_head: str | type[torch.nn.Module] | None = None,
        value_head_kwargs: Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
        compile: bool = False,
        use_sde: bool = False,
        optimizer_class: type[torch.optim.Optimizer] = torch.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if use_sde:
            raise ValueError("GPTPolicy: use_sde=True is for continuous actions; leave it out")
        check_spaces(observation_space, action_space)
        self.config = {
            "preset": preset,
            "n_layer": n_layer,
            "n_head": n_head,
            "n_embd": n_embd,
            "init_std": init_std,
            "pretrained": pretrained,
            "lora": lora,
            "tie": tie,
            "mask": mask,
            "group": group,
            "cache": cache,
            "cache_rows": cache_rows,
            "share_features_extractor": share_features_extractor,
            "value_head": value_head,
            "value_head_kwargs": value_head_kwargs,
            "gradient_checkpointing": gradient_checkpointing,
            "compile": compile,
        }
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch=[],
            ortho_init=False,  # would overwrite the GPT's own initialisation
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
        )

    def _build(self, lr_schedule: Schedule) -> None:
        space, c = self.observation_space, self.config
        self.action_dist = TokenDistribution(int(self.action_space.n))  # type: ignore[attr-defined]
        networks = build_networks(space, c)
        self.backbone = networks.backbone
        self.value_backbone = networks.value_backbone
        self.policy_head, self.value_head = networks.policy_head, networks.value_head
        automaton = getattr(space, "automaton", None) if c["mask"] else None
        self.masker: TokenMasker | None = None
        if automaton is not None:
            self.masker = TokenMasker(automaton, getattr(space, "learner_tag", -1))
        self.caches = RolloutCaches(self.backbone)
        self.value_caches = self.caches
        if self.value_backbone is not None:
            self.value_caches = RolloutCaches(self.value_backbone)
        self.optimizer = self.optimizer_class(
            [p for p in self.parameters() if p.requires_grad],
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )

    # Hidden states

    def _hidden(self, tokens: Tensor) -> Tensor:
        """Hidden state (B, d) of the policy's backbone at the end of each row of (B, L)."""
        return self._read(self.caches, tokens)

    def _value_hidden(self, tokens: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Hidden state (B, d) that values are read off: `hidden`, where the backbone is shared."""
        if self.value_backbone is None and hidden is not None:
            return hidden
        return self._read(self.value_caches, tokens)

    def _read(self, caches: RolloutCaches, tokens: Tensor) -> Tensor:
        c = self.config
        if c["cache"] and not torch.is_grad_enabled() and len(tokens) <= c["cache_rows"]:
            return caches.last_hidden(tokens, lengths_of(tokens), weights_version(caches.backbone))
        return last_hidden(caches.backbone, tokens, group=c["group"])

    def set_training_mode(self, mode: bool) -> None:
        if mode:  # an update follows
            self.caches.forget()
            self.value_caches.forget()
        super().set_training_mode(mode)

    # Distributions

    def _logits(self, tokens: Tensor, hidden: Tensor, masks: MASK_TYPES | None) -> Tensor:
        """Logits (B, V), forbidden tokens at a large negative number."""
        logits = self.policy_head(hidden)
        if masks is not None:
            allowed = torch.as_tensor(masks, device=logits.device).bool().view_as(logits)
        elif self.masker is not None:
            allowed = self.masker(tokens, lengths_of(tokens))
        else:
            return logits
        return logits.masked_fill(~allowed, FORBIDDEN)

    def _distribution(
        self, tokens: Tensor, hidden: Tensor, masks: MASK_TYPES | None
    ) -> Distribution:
        logits = self._logits(tokens, hidden, masks)
        return self.action_dist.proba_distribution(action_logits=logits)

    # What Stable-Baselines3 calls

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: MASK_TYPES | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (B,), values (B, 1) and log-probabilities (B,) for observations (B, L)."""
        tokens = left_aligned(obs)
        hidden = self._hidden(tokens)
        distribution = self._distribution(tokens, hidden, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        values = self.value_head(self._value_hidden(tokens, hidden))
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: PyTorchObs, actions: Tensor, action_masks: MASK_TYPES | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values (B, 1), log-probabilities (B,) of `actions` (B,) and entropies (B,)."""
        assert isinstance(obs, Tensor)
        tokens, group = left_aligned(obs), self.config["group"]
        hidden = value_hidden = last_hidden(self.backbone, tokens, group)
        if self.value_backbone is not None:
            value_hidden = last_hidden(self.value_backbone, tokens, group)
        distribution = self._distribution(tokens, hidden, action_masks)
        values = self.value_head(value_hidden)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(  # type: ignore[override]
        self, obs: PyTorchObs, action_masks: MASK_TYPES | None = None
    ) -> Distribution:
        """Distribution of the next token after each observation (B, L)."""
        assert isinstance(obs, Tensor)
        tokens = left_aligned(obs)
        return self._distribution(tokens, self._hidden(tokens), action_masks)

    def predict_values(self, obs: PyTorchObs) -> Tensor:
        """Values (B, 1) of observations (B, L)."""
        assert isinstance(obs, Tensor)
        return self.value_head(self._value_hidden(left_aligned(obs)))

    def _predict(
        self,
        observation: PyTorchObs,
        deterministic: bool = False,
        action_masks: MASK_TYPES | None = None,
    ) -> Tensor:
        distribution = self.get_distribution(observation, action_masks)
        return distribution.get_actions(deterministic=deterministic)

    def utter(
        self,
        prompt: Sequence[int],
        most: int,
        sampling: Sampling,
        generator: torch.Generator,
        masks: Masks,
    ) -> list[int]:
        """The tokens of one utterance after `prompt`, at most `most`, ``<end>`` included."""
        return say_tokens(self, prompt, most, sampling, generator, masks)

    # What the update of whole sequences calls

    def evaluate_sequences(
        self, tokens: Tensor, at: Tensor, actions: Tensor, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities and entropies (N,) of actions within whole sequences.

        One forward reads everything. Results are float32, under autocast too.

        Args:
            tokens: (S, T) int64 token ids, PAD at the right.
            at: (N,) int64 places in the flattened (S * T): the token that stands just before
                each action.
            actions: (N,) int64 token ids.
            allowed: (N, V) bool, at least one token a row; None allows every token. The
                automaton of the observation space is not asked.
        """
        hidden = self.backbone(tokens, at)
        log_probs = token_log_probs(self.policy_head, hidden, allowed)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        if self.value_backbone is not None:
            hidden = self.value_backbone(tokens, at)
        # Copies: hooks of sharded training cannot hold on to views.
        values, log_prob = self.value_head(hidden)[:, 0], chosen(log_probs, actions)
        return values.clone(), log_prob.clone(), entropy

    def sequence_log_prob(
        self, tokens: Tensor, at: Tensor, actions: Tensor, allowed: Tensor | None = None
    ) -> Tensor:
        """Log-probabilities (N,) alone; see `evaluate_sequences`."""
        hidden = self.backbone(tokens, at)
        return chosen(token_log_probs(self.policy_head, hidden, allowed), actions)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
            **self.config,
        }


class GPTPolicy(GPTActorCritic, ActorCriticPolicy):  # type: ignore[misc]
    """A GPT as actor and critic, for stock PPO and A2C: `PPO(GPTPolicy, env)`.

    See `GPTActorCritic` for the arguments, which go into `policy_kwargs`.
    """


class MaskableGPTPolicy(GPTActorCritic, MaskableActorCriticPolicy):  # type: ignore[misc]
    """`GPTPolicy` with the env's own action masks: `MaskablePPO(MaskableGPTPolicy, env)`."""


def token_log_probs(head: PolicyHead, hidden: Tensor, allowed: Tensor | None) -> Tensor:
    """Log-probabilities (N, V) of every token, from hidden states (N, d) and masks (N, V)."""
    logits = head(hidden)
    if allowed is not None:
        logits = logits.masked_fill(~allowed, FORBIDDEN)
    return logits.log_softmax(-1)


def chosen(of_tokens: Tensor, actions: Tensor) -> Tensor:
    """Of numbers (N, V), those of the tokens `actions` (N,)."""
    return of_tokens.gather(1, actions[:, None])[:, 0]
