"""ArCHer (Zhou et al. 2024): a critic of utterances that learns from replay, an actor of tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from torch import Tensor

from agents.argument_checks import check_bounds
from agents.buffers.replayed import DialogueReplay
from agents.buffers.sequences import Rollout, SequenceBatch, Sequences
from agents.buffers.stored import UtteranceBatch, scattered, utterances_of
from agents.decoding.generation import Utterances, sample_utterances
from agents.models.observations import Observed
from agents.online.groups import GroupAlgorithm
from agents.online.on_policy import SequenceOptions
from agents.online.reference import k3
from agents.online.truths import continued
from agents.policies.utterance import prompts_within
from agents.policies.utterance_critic import ArCHerPolicy, CriticValues, critic_values, of_tokens
from dialgym.datasets import TokenBatch
from dialgym.language.tokenizers import TAGS


class ArCHer(GroupAlgorithm):
    """Actor-critic of two levels: utterances are valued, and tokens said (arXiv 2402.19446).

    Each iteration plays one episode in every dialogue and remembers those that ended. The critic
    then takes `critic_steps` gradient steps on dialogues drawn from memory: with u' an utterance
    that the actor says now, Q_i(s, u) regresses to r(u) + gamma target V_i(s') and V_i(s) to target
    Q_i(s, u'), i = 1, 2. The actor takes `n_epochs` passes of REINFORCE, each over new utterances
    u' in states of drawn dialogues: the loss of each of their tokens is
    -(min Q(s, u') - min V(s)) log pi(token). A divergence from a reference (`kl`) and the entropy
    are terms of that loss, as in `GroupAlgorithm`. What u' would have earned is never played.

    Args:
        policy: `ArCHerPolicy`, or "GPTPolicy", which names it here.
        env: of token windows, whose masks follow from its constraint; without features.
        n_epochs: passes of the actor in an iteration.
        gamma: discount from one utterance to the next.
        tau: of the critic's slow copies, as of `agents.ILQL`.
        critic_steps: gradient steps of the critic in an iteration.
        replay_size: dialogues that are remembered.
        replay_batch: dialogues drawn for a step of the critic, and for a pass of the actor.
        warmup: iterations at first in which the critic alone learns.
        token_baseline: the value head learns the advantage before each token, of which it is then
            taken off: the actor's tokens differ in what they add. It does not move the actor.
        value_learning_rate: of the critic, a number or a schedule; None takes `learning_rate`.
        kwargs: further arguments of `SequenceAlgorithm`. Dialogues that go on beyond `n_steps`
            tokens, or that a sliding window divides, are not remembered.

    Raises:
        ValueError: a number that cannot be, an env whose masks are its own or which has features,
            or as of `OnlineAlgorithm`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": ArCHerPolicy}
    policy_kinds = (ArCHerPolicy,)
    expected_policy = "agents.ArCHerPolicy, which has a critic of whole utterances"
    process_state = (*GroupAlgorithm.process_state, "replay", "iterations")
    policy: ArCHerPolicy  # type: ignore[assignment]

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 3,
        gamma: float = 0.95,
        tau: float = 0.1,
        critic_steps: int = 50,
        replay_size: int = 10_000,
        replay_batch: int = 32,
        warmup: int = 5,
        token_baseline: bool = False,
        value_learning_rate: float | Schedule | None = None,
        **kwargs: Unpack[SequenceOptions],
    ) -> None:
        check_bounds("ArCHer", {"gamma": gamma, "tau": tau})
        self.tau, self.critic_steps, self.warmup = tau, critic_steps, warmup
        self.replay_size, self.replay_batch = replay_size, replay_batch
        self.token_baseline = token_baseline
        self.value_learning_rate = value_learning_rate
        self.iterations = 0
        super().__init__(policy, env, n_epochs=n_epochs, group_size=None, **kwargs)
        self.gamma = gamma

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.processes.sharded:
            raise ValueError(
                "ArCHer: a critic that learns by itself cannot share weights (accelerate, "
                "distributed_type: FSDP or DEEPSPEED); use MULTI_GPU, or one process"
            )
        if self._keeps_masks or self.policy.features is not None:
            raise ValueError(
                "ArCHer: it says new things in states that it remembers, and neither masks nor "
                "features are known there; expected an env whose masks follow from its constraint, "
                "without masks or features in observations, or masks by call (env_masks=False)"
            )
        self._separate_values()
        self.replay = DialogueReplay(self.replay_size)
        if self.policy.decoding.max_tokens is None:
            self.policy.decoding.max_tokens = _limit_of(self.policy.token_space)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "replay", "_last_seen"]

    # The rollout

    def _begun(self, infos: list[dict[str, Any]], chosen: np.ndarray) -> None:
        self._last_seen: dict[tuple[int, int], np.ndarray] = {}

    def _step_extras(self, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Dialogues that a limit cut off; what was seen last in them is kept aside."""
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        for row in np.flatnonzero(cut).tolist():
            last = Observed.of(_one_row(infos[row]["terminal_observation"])).tokens[0]
            self._last_seen[len(self.rollout_buffer), row] = last.numpy()
        return {"cut": cut}

    def _rollout(self, said: np.ndarray) -> Rollout:
        """Add the dialogues to the replay memory; advantages are the critic's, now."""
        sequences = self._sequences(said)
        dialogues, ended = self._dialogues(sequences)
        self.replay.add(_those(dialogues, ended))
        if not len(self.replay):
            raise ValueError(
                f"ArCHer: expected dialogues that end within n_steps={self.n_steps} tokens and lie "
                "within one window of observations, got none; give a larger n_steps, and the env a "
                "larger window"
            )
        advantages = self._advantages(dialogues)
        columns = sequences.columns
        return Rollout(sequences, columns["actions"], columns["log_probs"], advantages)

    def _dialogues(self, sequences: Sequences) -> tuple[TokenBatch, np.ndarray]:
        """The rollout's sequences (S,) as dialogues in whole windows, and (S,) which have ended."""
        buffer, window = self.rollout_buffer, self.policy.backbone.window
        steps, last = sequences.steps, sequences.first[1:] - 1
        count, width = sequences.tokens.shape
        tokens = np.zeros((count, window + 1), np.int32)  # the last one may find no place
        tokens[:, :width] = sequences.tokens.cpu().numpy()
        own, reward = np.zeros(tokens.shape, bool), np.zeros(tokens.shape, np.float32)
        rows = np.repeat(np.arange(count), sequences.sizes)
        at = rows, sequences.places + 1
        tokens[at] = buffer.steps("actions").reshape(-1)[steps]
        reward[at] = buffer.steps("rewards").reshape(-1)[steps]
        own[at] = True
        lengths = sequences.places[last] + 2
        done = buffer.steps("dones").reshape(-1)[steps[last]]
        cut = buffer.steps("cut").reshape(-1)[steps[last]]
        for i in np.flatnonzero(cut).tolist():
            seen = self._last_seen[divmod(int(steps[last[i]]), self.n_envs)]
            tokens[i, : len(seen)] = seen
            lengths[i] = max(lengths[i], np.flatnonzero(seen)[-1] + 1)
        owner = steps[last] % self.n_envs
        whole = np.bincount(owner, minlength=self.n_envs)[owner] == 1
        fits = whole & (lengths <= window)
        batch = TokenBatch(
            tokens=tokens[:, :window],
            is_action=own[:, :window],
            reward=reward[:, :window],
            return_to_go=np.zeros_like(reward[:, :window]),
            terminated=done & ~cut,
            truncated=~done | cut,
            lengths=np.minimum(lengths, window),
            rows=np.arange(count),
        )
        return batch, done & fits

    def _advantages(self, dialogues: TokenBatch) -> Tensor:
        """(N,): at each token of the learner's, in order, the advantage of its utterance."""
        sequences = self._utterances(dialogues)
        found = torch.zeros(len(sequences), device=self.device)
        with torch.no_grad(), self.updater.precision():
            for rows, batch in self._parts(sequences, self.updater.most_tokens):
                found[rows] = of_tokens(self._values(batch).advantages.float(), batch)
        return found[sequences.columns["is_action"]]

    # From dialogues to batches of utterances

    def _utterances(self, dialogues: TokenBatch) -> Sequences:
        tag, window = getattr(self.policy.token_space, "learner_tag", None), self.policy.token_space
        sequences = utterances_of(dialogues, self.device, tag, window.shape[0])
        sequences.columns["token_weights"] = torch.ones(len(sequences), device=self.device)
        if self.policy.masker is not None:
            sequences.add_states(self.policy.masker)
        return sequences

    def _parts(
        self, sequences: Sequences, most_tokens: int
    ) -> Iterator[tuple[Tensor, UtteranceBatch]]:
        """Batches of at most so many tokens, each with the numbers (n,) of its places."""
        for part in sequences.parts(np.arange(len(sequences.sizes)), most_tokens):
            yield part.rows, UtteranceBatch.gather(sequences, part, None)

    def _drawn(self) -> Sequences:
        return self._utterances(self.replay.draw(self.replay_batch, self.rng))

    def _values(self, batch: UtteranceBatch) -> CriticValues:
        states = self.policy.critic_states(batch.observations, batch.at)
        return critic_values(self.policy, batch, *states, self.gamma)

    def _say(self, batch: UtteranceBatch, where: Tensor) -> Utterances:
        """Utterances that the actor says now at the places `where` (n,), once at each."""
        return sample_utterances(self.policy, prompts_within(self.policy, batch, where), 1)

    # The update

    def train(self) -> None:
        """Let the critic learn from memory, and after `warmup` iterations the actor."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        logs: dict[str, list[float]] = defaultdict(list)
        for _ in range(self.critic_steps):
            sequences = self._drawn()
            batches = (batch for _, batch in self._parts(sequences, self.updater.most_tokens))
            count = int(sequences.columns["ends"].sum())
            metrics = self.updater.backward(self.critic_loss, batches, count)
            self.updater.step()
            self.policy.update_targets(self.tau)
            for name, value in metrics.items():
                logs[name].append(value)
        for name, values in logs.items():
            self.logger.record(f"critic/{name}", float(np.mean(values)))
        self.iterations += 1
        if self.iterations > self.warmup:
            super().train()

    def critic_loss(self, batch: UtteranceBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses (n,) of the critic at the ends of utterances, and metrics (n,)."""
        values, begun = self._values(batch), batch.begins & batch.is_action
        target_q = self.policy.target_q_of(batch, begun, self._say(batch, begun))
        losses = critic_losses(values, target_q)
        means = {"q": values.q.mean(0), "v": values.v.mean(0)}
        found = {name: scattered(x, batch.ends) for name, x in {**losses, **means}.items()}
        return found["q_loss"] + found["v_loss"], found

    def _epoch(self, logs: dict[str, list[float]]) -> bool:
        """One pass over utterances that the actor says now in states of drawn dialogues."""
        self.rollout = self._imagined(self._drawn())
        logs["advantage"].append(float(self.rollout.advantages.mean()))
        return super()._epoch(logs)

    @torch.no_grad()
    def _imagined(self, sequences: Sequences) -> Rollout:
        """Utterances of the actor as it is now wherever it would speak, and their values."""
        everything = 2 * int(sequences.lengths.sum()) * len(sequences.lengths)
        [(rows, batch)] = self._parts(sequences, everything)
        has_room = batch.at % batch.observations.shape[1] + 1 < self.policy.backbone.window
        where = batch.begins & has_room  # a limit may cut a dialogue off where the window is full
        said = self._say(batch, where)
        hidden, _ = self.policy.critic_states(batch.observations, batch.at[where])
        v = self.policy.v_heads(hidden)[..., 0].amin(0)
        worth = self.policy.q_of(batch, where, said).amin(0) - v
        sizes = said.lengths[:, 0].cpu().numpy()
        tokens = said.tokens[:, 0].cpu().numpy()
        answers = [row[:size] for row, size in zip(tokens, sizes, strict=True)]
        whole = continued(sequences, rows[where].cpu().numpy(), answers)
        if self.policy.masker is not None:
            whole.add_states(self.policy.masker)
        log_probs = self._all_log_probs(whole, self.policy.sequence_log_prob)
        advantages = worth.repeat_interleave(said.lengths[:, 0])
        targets = None
        if self.token_baseline:
            targets = advantages
            advantages = advantages - self._all_log_probs(whole, self._baseline)
        reference = self._reference_log_probs(whole)
        columns = whole.columns["actions"], log_probs, advantages
        return Rollout(whole, *columns, targets=targets, reference_log_probs=reference)

    def _baseline(self, tokens: Tensor, at: Tensor, actions: Tensor, *rest: Any) -> Tensor:
        """Values (N,) of the places before single tokens."""
        return self.policy.evaluate_sequences(tokens, at, actions, *rest)[0]

    def policy_loss(
        self, batch: SequenceBatch, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """-A log pi of each token (Zhou et al. 2024), with A of its utterance."""
        approx_kl = k3(log_prob - batch.log_probs).detach()
        return -batch.advantages * log_prob, {"approx_kl": approx_kl}


def critic_losses(values: CriticValues, target_q: Tensor) -> dict[str, Tensor]:
    """Squared errors (m,) of the critic, each the sum over both heads.

    Args:
        values: of m utterances that were said.
        target_q: (2, m), the slow copies' Q of what the actor says in their place.
    """
    return {
        "q_loss": (values.q_targets - values.q).square().sum(0),
        "v_loss": (target_q - values.v).square().sum(0),
    }


def _those(batch: TokenBatch, rows: np.ndarray) -> TokenBatch:
    """The dialogues at `rows` (B,) bool."""
    return TokenBatch(*(column[rows] for column in batch))


def _one_row(observation: Any) -> Any:
    """An observation as a batch of one."""
    if isinstance(observation, dict):
        return {key: value[None] for key, value in observation.items()}
    return observation[None]


def _limit_of(space: Any) -> int | None:
    """Most tokens of an utterance of the learner's; None where the space knows of no limit."""
    limits = getattr(space, "limits", {})
    speakers = [name for name, tag in TAGS.items() if tag == getattr(space, "learner_tag", None)]
    found: int | None = limits.get(speakers[0]) if speakers else None
    return found
