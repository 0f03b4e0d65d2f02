"""GPT policies for the stock on-policy algorithms of Stable-Baselines3.

Two costs are gone, without a change to the algorithm. In the rollout each env row keeps its KV
cache and only new tokens are computed; in the update the observations that are beginnings of one
another share one forward. Both give what reading every observation from its start would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor

from agents.decoding.distributions import TokenDistribution
from agents.decoding.repeats import LEAST, Decided, fitting_repeats, unrepeated
from agents.decoding.sampling import Masks, SampledPolicy, Sampling, say_tokens
from agents.models.build import Execution, build_networks, make_optimizer
from agents.models.cache import to_device
from agents.models.exported import save_pretrained
from agents.models.heads import log_probs_of, masked_logits
from agents.models.masking import FORBIDDEN, PlannedMasks, fitting, masker_of
from agents.models.observations import (
    FeatureEmbedding,
    Observed,
    check_spaces,
    feature_count,
    has_masks,
    token_space,
)
from agents.models.prefixes import last_hidden
from agents.models.rollout_cache import RolloutCaches
from dialgym.errors import finite_number, settings_as

MASK_TYPES = np.ndarray | Tensor


class PolicyOptions(TypedDict, total=False):
    """Arguments of all policies: those of Stable-Baselines3, and how they draw in play."""

    use_sde: bool
    optimizer_class: type[torch.optim.Optimizer]
    optimizer_kwargs: dict[str, Any] | None
    sampling: Sampling | Mapping[str, Any] | None


class GPTActorCritic(SampledPolicy):
    """Base of all GPT policies; comes first among the bases of a policy class.

    Args:
        observation_space: `Box(0, V - 1, (L,), int)`, token ids, padded with 0 on either side;
            `learner_tag` and `automaton` are used when the space has them. Or a `Dict` with that
            under "tokens" or "observation" and beside it "action_mask" (V,), of allowed tokens, and
            "features" (...,), such as of an image, made a bias on all embeddings by a linear map.
        action_space: `Discrete(V)`.
        lr_schedule: as everywhere in Stable-Baselines3.
        preset: "nano" (2 layers of 64; the default), "mini" (4 of 256) or "small" (12 of 768).
        n_layer, n_head, n_embd, positions, init_std: replace the preset's; see `GPTConfig`.
        pretrained: folder, ``hf:NAME`` or ``hf:NAME@REVISION`` of a causal language model of
            `transformers`, in place of a preset; see `agents.models.pretrained.load_backbone`. The
            observation space must have a `tokenizer`. A saved model reloads by the same name, at
            the commit that it had, which then gives the shape alone: the weights are those of its
            file.
        lora: settings of low-rank adapters, which train in place of the backbone's own weights; see
            `agents.models.lora.add_lora`. A tied policy head is frozen with the embeddings.
        tie: the policy head shares the token embeddings, if those of a pretrained model do.
        mask: tokens that the space's automaton forbids get no probability. Masks handed in by
            the caller (MaskablePPO), or else those of the observation, are used in its place.
        share_features_extractor: the value head reads the policy's backbone; False gives it one of
            its own, with the same initial weights, and a mapping another one: of a preset or of
            sizes, `{"preset": "mini"}`, of another model, `{"pretrained": "hf:NAME"}`, either with
            `lora`, or of your own class, `{"class": "my_package.critics:Critic", ...}`; see
            `agents.models.build.made_critic`.
        value_head: class of the value head, or its name, in place of a linear map: made with the
            width d of hidden states, it takes them (..., d) to values (..., 1). A mapping names it
            as `class` and gives it further arguments: `{"class":
            "agents.models.heads.MLPHead", "outputs": 1}`.
        execution: how the networks are run, see `Execution`.
        temperature: divides the logits in rollouts, updates and evaluations alike. Below 1 a clone
            of mixed play begins with what it deems likely; `start_from` takes the weights alone.
        avoid_repeats: deterministic choices do not say a whole utterance of the learner's again
            where an alternative has at least this probability; see `agents.decoding.repeats`. None,
            as where the space has no `learner_tag`, always takes the likeliest token.
        optimizer_class, optimizer_kwargs: as everywhere in Stable-Baselines3.
        sampling: settings of `Sampling` by which `predict` draws, and no update.

    Raises:
        ValueError: the spaces are not tokens in, token out, or a number that cannot be.
    """

    config: dict[str, Any]  # set before the parent's constructor, which calls `_build`
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
        positions: str | None = None,
        init_std: float | None = None,
        pretrained: str | None = None,
        lora: Mapping[str, Any] | None = None,
        tie: bool = True,
        mask: bool = True,
        share_features_extractor: bool | str | type[torch.nn.Module] | Mapping[str, Any] = True,
        value_head: str | type[torch.nn.Module] | Mapping[str, Any] | None = None,
        execution: Execution | Mapping[str, Any] | None = None,
        temperature: float = 1.0,
        avoid_repeats: float | None = LEAST,
        **options: Unpack[PolicyOptions],
    ) -> None:
        if options.pop("use_sde", False):
            raise ValueError("GPTPolicy: use_sde=True is for continuous actions; leave it out")
        check_spaces(observation_space, action_space)
        if finite_number("temperature", temperature) <= 0:
            raise ValueError(f"temperature: expected a number above 0, got {temperature}")
        self.config = {
            "preset": preset,
            "n_layer": n_layer,
            "n_head": n_head,
            "n_embd": n_embd,
            "positions": positions,
            "init_std": init_std,
            "pretrained": pretrained,
            "lora": lora,
            "tie": tie,
            "mask": mask,
            "share_features_extractor": share_features_extractor,
            "value_head": value_head,
            "execution": settings_as(Execution, "execution", execution),
            "temperature": temperature,
            "avoid_repeats": fitting_repeats(avoid_repeats, token_space(observation_space)),
        }
        own: dict[str, Any] = {"net_arch": [], "ortho_init": False}  # it has initial weights
        super().__init__(observation_space, action_space, lr_schedule, **own, **options)

    @property
    def execution(self) -> Execution:
        """The settings by which the networks are run."""
        execution: Execution = self.config["execution"]
        return execution

    @property
    def token_space(self) -> Any:
        """The space of token windows among the observations."""
        return token_space(self.observation_space)

    def _build(self, lr_schedule: Schedule) -> None:
        space, c = self.token_space, self.config
        self.action_dist = TokenDistribution(int(self.action_space.n))  # type: ignore[attr-defined]
        networks = build_networks(space, c)
        self.backbone = networks.backbone
        self.value_backbone = networks.value_backbone
        self.policy_head, self.value_head = networks.policy_head, networks.value_head
        self.reads_masks: bool = c["mask"] and has_masks(self.observation_space)
        self.masker = masker_of(space, "automaton") if c["mask"] else None
        self._build_features()
        self.planned_masks = PlannedMasks(space if c["mask"] else None, self.masker)
        self.caches = RolloutCaches(self.backbone, self.features)
        self.value_caches = self.caches
        if self.value_backbone is not None:
            self.value_caches = RolloutCaches(self.value_backbone, self.value_features)
        self.decided = Decided()
        self.optimizer = make_optimizer(self, lr_schedule)

    def _build_features(self) -> None:
        """A map of the features beside the tokens, one for each backbone; None without any."""
        self.features: FeatureEmbedding | None = None
        self.value_features: FeatureEmbedding | None = None
        count = feature_count(self.observation_space)
        if count:
            self.features = FeatureEmbedding(count, self.backbone.embedding)
            if self.value_backbone is not None:
                self.value_features = self._features_of_values(count)

    def _features_of_values(self, count: int) -> FeatureEmbedding:
        """A map of the features for the values' backbone: a copy where the embeddings are one."""
        if self.value_backbone.embedding.shape == self.backbone.embedding.shape:
            return deepcopy(self.features)  # type: ignore[return-value]
        return FeatureEmbedding(count, self.value_backbone.embedding)

    # Hidden states

    def _hidden(self, seen: Observed) -> Tensor:
        """Hidden state (B, d) of the policy's backbone at the end of each observation."""
        return self._read(self.caches, seen)

    def _value_hidden(self, seen: Any, hidden: Tensor | None = None) -> Tensor:
        """Hidden state (B, d) that values are read off: `hidden`, where the backbone is shared."""
        if self.value_backbone is None and hidden is not None:
            return hidden
        return self._read(self.value_caches, Observed.of(seen))

    def _read(self, caches: RolloutCaches, seen: Observed) -> Tensor:
        run = self.execution
        cached = run.cache and hasattr(caches.backbone, "extend")
        if cached and not torch.is_grad_enabled() and seen.total <= run.cache_rows:
            return caches.read(seen)
        return self._read_whole(caches, seen)

    def _read_whole(self, caches: RolloutCaches, seen: Observed) -> Tensor:
        bias = None
        if seen.features is not None:
            bias = caches.embed(seen.features.to(self.device))  # type: ignore[misc]
        return last_hidden(caches.backbone, seen.tokens, self.execution.group, bias=bias)

    def set_training_mode(self, mode: bool) -> None:
        if mode:  # an update follows, after which nothing cached is valid
            self.caches.version = self.value_caches.version = None
            self.decided.tokens = {}
        super().set_training_mode(mode)

    # Distributions

    def allowed(self, seen: Observed, masks: MASK_TYPES | None = None) -> Tensor | None:
        """Allowed tokens (B, V) bool: `masks`, else the observation's, else the automaton's.

        None where nothing is known to be forbidden.

        Raises:
            ValueError: as of `fitting`, for masks on the host.
        """
        given = seen.allowed if masks is None and self.config["mask"] else masks
        if given is not None:
            if isinstance(given, Tensor) and given.device.type != "cpu":
                return given.bool().view(len(seen.tokens), -1)
            return to_device(fitting(given, len(seen.tokens), self.action_space), self.device)
        return None if self.masker is None else self.masker(seen.tokens, seen.lengths)

    def _logits(self, seen: Any, hidden: Tensor, masks: MASK_TYPES | None) -> Tensor:
        """Logits (B, V), forbidden tokens at a large negative number."""
        logits = self.policy_head(hidden)
        allowed = self.allowed(Observed.of(seen), masks)
        return logits if allowed is None else logits.masked_fill(~allowed, FORBIDDEN)

    def _distribution(self, seen: Any, hidden: Tensor, masks: MASK_TYPES | None) -> Distribution:
        logits = self.sampling.logits(self._logits(seen, hidden, masks))
        return self.action_dist.proba_distribution(action_logits=logits)

    # What Stable-Baselines3 calls

    def forward(
        self,
        obs: PyTorchObs | Observed,
        deterministic: bool = False,
        action_masks: MASK_TYPES | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (B,), values (B, 1) and log-probabilities (B,) for observations of B rows."""
        seen = Observed.of(obs)
        hidden = self._hidden(seen)
        logits, used = masked_logits(self.policy_head, hidden, self.allowed(seen, action_masks))
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        chosen = distribution.get_actions(deterministic=deterministic)
        values = self.value_head(self._value_hidden(seen, hidden))
        log_probs = distribution.log_prob(chosen)
        return chosen if used is None else used[chosen], values, log_probs

    def evaluate_actions(
        self, obs: PyTorchObs, actions: Tensor, action_masks: MASK_TYPES | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values (B, 1), log-probabilities (B,) of `actions` (B,) and entropies (B,)."""
        seen = Observed.of(obs)
        hidden = value_hidden = self._read_whole(self.caches, seen)
        if self.value_backbone is not None:
            value_hidden = self._read_whole(self.value_caches, seen)
        logits = self._logits(seen, hidden, action_masks)  # as `forward` draws by
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        values = self.value_head(value_hidden)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(  # type: ignore[override]
        self, obs: PyTorchObs | Observed, action_masks: MASK_TYPES | None = None
    ) -> Distribution:
        """Distribution of the next token after each observation."""
        seen = Observed.of(obs)
        return self._distribution(seen, self._hidden(seen), action_masks)

    def predict_values(self, obs: PyTorchObs | Observed) -> Tensor:
        """Values (B, 1) of observations."""
        return self.value_head(self._value_hidden(Observed.of(obs)))

    def _predict(
        self,
        observation: PyTorchObs,
        deterministic: bool = False,
        action_masks: MASK_TYPES | None = None,
    ) -> Tensor:
        seen = Observed.of(observation)
        distribution = self.get_distribution(seen, action_masks)
        if not deterministic:
            return distribution.get_actions()
        return self.likeliest(distribution.distribution.probs, seen)  # type: ignore[union-attr]

    def likeliest(self, probabilities: Tensor, seen: Observed) -> Tensor:
        """The next tokens (B,) by `probabilities` (B, V), without repeats; see `avoid_repeats`."""
        tag, least = getattr(self.token_space, "learner_tag", -1), self.config["avoid_repeats"]
        self.decided.keep_up(self)
        return unrepeated(probabilities, seen, tag, least, self._ahead, self.decided)

    def _ahead(self, seen: Observed) -> Tensor:
        """Probabilities (b, V) of the next tokens after what may come to be observed."""
        masks = self.planned_masks(seen) if self.masker is None else None
        return self.get_distribution(seen, masks).distribution.probs  # type: ignore[union-attr]

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
        self,
        tokens: Tensor,
        at: Tensor,
        actions: Tensor,
        allowed: Tensor | None = None,
        features: Tensor | None = None,
        entropy_gradient: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities and entropies (N,) of actions within whole sequences.

        One forward reads everything. Results are float32, under autocast too.

        Args:
            tokens: (S, T) int64 token ids, PAD at the right.
            at: (N,) int64 places in the flattened (S * T): the token that stands just before
                each action.
            actions: (N,) int64 token ids.
            allowed: (N, V) bool, or its bits (N, ceil(V / 8)) uint8, at least one token a row; None
                allows every token. The automaton of the observation space is not asked.
            features: (S, F) beside the sequences, where observations have them.
            entropy_gradient: False where entropies are only looked at, which spares memory.
        """
        hidden = self.backbone(tokens, at, *self._bias(self.features, features))
        log_prob, entropy = log_probs_of(
            self.policy_head, hidden, actions, allowed, entropy_gradient
        )
        if self.value_backbone is not None:
            hidden = self.value_backbone(tokens, at, *self._bias(self.value_features, features))
        # Copies: hooks of sharded training cannot hold on to views.
        return self.value_head(hidden)[:, 0].clone(), log_prob.clone(), entropy

    def sequence_log_prob(
        self,
        tokens: Tensor,
        at: Tensor,
        actions: Tensor,
        allowed: Tensor | None = None,
        features: Tensor | None = None,
    ) -> Tensor:
        """Log-probabilities (N,) alone; see `evaluate_sequences`."""
        hidden = self.backbone(tokens, at, *self._bias(self.features, features))
        return log_probs_of(self.policy_head, hidden, actions, allowed)[0]

    def _bias(self, embed: FeatureEmbedding | None, features: Tensor | None) -> tuple[Tensor, ...]:
        """A further argument of backbones, where there are features."""
        return () if features is None or embed is None else (embed(features),)

    def save_pretrained(self, folder: str | Path, lora: str = "merged") -> Path:
        """Write what it speaks by as a causal language model of `transformers`, with its tokenizer.

        See `agents.models.exported.save_pretrained`.
        """
        return save_pretrained(self, folder, lora)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
            "sampling": asdict(self.sampling),
            **self.config,
        }


class GPTPolicy(GPTActorCritic, ActorCriticPolicy):  # type: ignore[misc]
    """A GPT as actor and critic, for stock PPO and A2C: `PPO(GPTPolicy, env)`.

    See `GPTActorCritic` for the arguments, which go into `policy_kwargs`.
    """


class MaskableGPTPolicy(GPTActorCritic, MaskableActorCriticPolicy):  # type: ignore[misc]
    """`GPTPolicy` with the env's own action masks: `MaskablePPO(MaskableGPTPolicy, env)`."""
