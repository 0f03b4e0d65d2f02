"""MADPL: both parties of a dialogue learn at once, each with values of its own and one in common.

The two play each other in the two-party act view (`dialgym.aec_env`). What the dialogue gives is
the global reward, what one party alone is to blame for its own; a hybrid value network has a value
of each and one of both, and a party learns from the sum of its own advantage and the common one.
Source: Takanobu, Liang and Huang (2020), arXiv 2004.03809.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from agents.acts.base import ActAlgorithm, RolloutOptions, minibatches
from agents.acts.pairs import OpenDialogue, OwnRewards, Played
from agents.acts.past_selves import PAST, Cast, PastOptions, PastSelves
from agents.policies.belief import BeliefPolicy
from agents.returns import discounted_returns
from agents.storage.models import load
from dialgym.errors import share, with_settings
from dialgym.views.spaces import maskable
from dialgym.views.two_party import ActTwoPartyEnv


class HybridValues(nn.Module):
    """V of one party's belief, of the other's, and of both: two encoders, three heads.

    Args:
        sizes: numbers of a belief of the learner, and of its partner.
        hidden: units of each layer.
    """

    def __init__(self, sizes: tuple[int, int], hidden: int) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(
            nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.Tanh())
            for size in sizes
        )
        widths = (hidden, hidden, 2 * hidden)
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 1))
            for width in widths
        )

    def forward(self, both: tuple[Tensor, Tensor], party: int) -> tuple[Tensor, Tensor]:
        """The party's own and the common values (n,) of beliefs (n, B) and (n, C)."""
        coded = [encode(seen) for encode, seen in zip(self.encoders, both)]
        common: Tensor = self.heads[2](torch.cat(coded, -1))
        own: Tensor = self.heads[party](coded[party])
        return own[:, 0], common[:, 0]


class TwoPartyTurns(NamedTuple):
    """n decisions of a party, dialogue by dialogue, each in order; rewards until its next one."""

    both: tuple[Tensor, Tensor]  # (n, B), (n, C): what each party knows
    both_after: tuple[Tensor, Tensor]  # the same at its next decision, or at the end
    actions: Tensor  # (n,) int64, or (n, A)
    masks: Tensor  # (n, A) or (n, 2 A)
    log_probs: Tensor  # (n,)
    rewards: Tensor  # (n, 2): its own, and the global one
    terminated: Tensor  # (n,) bool, nothing is to be bootstrapped
    last: Tensor  # (n,) bool, of its dialogue


class TwoPartyBatch(NamedTuple):
    """Some decisions of a party, as its losses read them."""

    party: int  # 0 the learner, 1 its partner
    both: tuple[Tensor, Tensor]
    actions: Tensor
    masks: Tensor
    log_probs: Tensor
    advantages: Tensor  # (n, 2): its own, and the global one
    returns: Tensor  # (n, 2)

    def select(self, rows: Tensor) -> TwoPartyBatch:
        """The decisions at `rows`."""
        both = self.both[0][rows], self.both[1][rows]
        return TwoPartyBatch(self.party, both, *(column[rows] for column in self[2:]))  # type: ignore[arg-type]


class MADPL(ActAlgorithm):
    """Multi-agent dialog policy learning; see the module.

    `predict`, evaluation and callbacks are those of the learner's policy, in the env's own view;
    `side("user")` is either policy as a model of its own, to be saved, scored, or put in a user's
    place. A rollout is a dialogue of the pair for each row of the env.

    Args:
        policy, env: as of `ActAlgorithm`.
        partner: a saved model, or a model, that the other party begins as and whose network it
            has; None begins with an untrained policy like the learner's.
        gae_lambda: of the advantages; 0 takes one step, as the paper does.
        clip_range: of the ratio to the policy that chose, as in PPO.
        own_coef: weight of what the task lays to a party's own account (`PartyActs.own_reward`):
            in MultiWOZ 1 for each request left unanswered, and each constraint held back.
        empty_cost: what a party pays of its own for saying nothing at all; 5 times such a one
            in the paper.
        own_share: share of what the dialogue gives a party that is paid to it alone; of the rest
            both get the mean. 0 for parties with one aim, as in the paper, 1 for opponents.
        past: earlier selves that are met in a share of the dialogues, `PastOptions`:
            ``{"share": 0.5}`` those that learning began with, with ``kept`` and ``every`` a
            population. None: there are none.
        values_hidden: units of the value network.
        values_rate: its learning rate.
        target_every: rollouts from one copy of the value network, which targets are read from, to
            the next.
        kwargs: further arguments of `ActAlgorithm`.

    Attributes:
        policies: of both parties.
        values: the hybrid value network.

    Raises:
        ValueError: as of `ActAlgorithm`; or an env without two parties that have acts.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        partner: Any = None,
        gae_lambda: float = 0.95,
        clip_range: float = 0.2,
        own_coef: float = 1.0,
        empty_cost: float = 5.0,
        own_share: float = 0.0,
        past: Mapping[str, Any] | None = None,
        values_hidden: int = 100,
        values_rate: float = 1e-3,
        target_every: int = 1,
        **kwargs: Unpack[RolloutOptions],
    ) -> None:
        self.partner = partner
        self.clip_range, self.own_coef, self.empty_cost = clip_range, own_coef, empty_cost
        self.own_share = share("own_share of MADPL", own_share)
        self.past_options = dict(past or {})
        self.values_hidden, self.values_rate = values_hidden, values_rate
        self.target_every = target_every
        self._given_lambda = gae_lambda
        super().__init__(policy, env, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.gae_lambda = self._given_lambda
        self.rng = getattr(self, "rng", None) or np.random.default_rng(self.seed)
        self.pairs: list[ActTwoPartyEnv] = []
        if self.env is not None:
            self._open_pairs(self.env)
        partner = self._made_partner()
        self.partner_policy: BeliefPolicy = partner.to(self.device)
        options = with_settings(PastOptions, PAST, self.past_options).checked()
        self.past = PastSelves(self.policies, options).to(self.device)
        sizes = tuple(int(s.shape[0]) for s in (self.observation_space, self.partner_spaces[0]))  # type: ignore[index]
        self.values = HybridValues(sizes, self.values_hidden).to(self.device)  # type: ignore[arg-type]
        self.target_values = deepcopy(self.values).requires_grad_(False)
        self.values_optimizer = torch.optim.Adam(self.values.parameters(), self.values_rate)

    def _open_pairs(self, env: VecEnv) -> None:
        if not env.has_attr("task") or not env.has_attr("learner"):
            raise ValueError(
                "MADPL: expected an act view of dialgym in this process (workers=0), whose task "
                f"both parties play; got {env}"
            )
        task, learner = env.get_attr("task")[0], env.get_attr("learner")[0]
        self.pairs = [ActTwoPartyEnv(task, text_info=False) for _ in range(env.num_envs)]
        self.parties = (learner, next(p for p in task.parties if p != learner))
        other = self.parties[1]
        self.partner_spaces = (
            self.pairs[0].observation_space(other), self.pairs[0].action_space(other),
        )  # fmt: skip

    def _made_partner(self) -> BeliefPolicy:
        """The partner's policy; what it was made by is saved, so that its file is needed once."""
        found, source = None, self.partner
        if not hasattr(self, "partner_kwargs"):
            self.partner_kwargs = dict(self.policy_kwargs)
            if source is not None:
                is_path = isinstance(source, str | Path)
                found = load(source, device=self.device) if is_path else source
                self.partner_kwargs = dict(found.policy_kwargs)
        policy = BeliefPolicy(*self.partner_spaces, self.lr_schedule, **self.partner_kwargs)
        if found is not None:
            spaces = found.observation_space.shape, found.action_space
            if spaces != (self.partner_spaces[0].shape, self.partner_spaces[1]):
                raise ValueError(
                    f"MADPL: expected a partner that sees {self.partner_spaces[0].shape} numbers "
                    f"and chooses {self.partner_spaces[1]}, got {spaces[0]} and {spaces[1]}; "
                    f"clone one with learner={self.parties[1]!r}"
                )
            policy.load_state_dict(found.policy.state_dict())
        return policy

    @property
    def policies(self) -> tuple[BeliefPolicy, BeliefPolicy]:
        """The learner's and its partner's."""
        return self.policy, self.partner_policy

    def side(self, party: str) -> Any:
        """The policy of a party as a model (`agents.MLE`), without critics and optimizers.

        Raises:
            ValueError: there is no such party.
        """
        from agents.offline.mle import MLE

        if party not in self.parties:
            raise ValueError(f"MADPL: expected a party, {self.parties}, got {party!r}")
        own = self.policies[self.parties.index(party)]
        kwargs = (self.policy_kwargs, self.partner_kwargs)[self.parties.index(party)]
        model = MLE(
            BeliefPolicy, None, policy_kwargs=kwargs, device=self.device, _init_setup_model=False
        )  # type: ignore[arg-type]
        model.observation_space, model.action_space = own.observation_space, own.action_space
        model._setup_model()
        model.policy.load_state_dict(own.state_dict())
        return model

    # Rollout

    def collect(self, env: VecEnv, callback: BaseCallback) -> bool:
        """A dialogue of each pair, some of them with an earlier self."""
        self.past.note(self._n_updates, self.policies)
        cast = self.past.cast(len(self.pairs), self.rng)
        games = [
            OpenDialogue(pair, self.parties, int(self.rng.integers(2**31))) for pair in self.pairs
        ]
        while not all(game.over for game in games):
            before = np.array([game.over for game in games])
            infos: list[dict[str, Any]] = [{} for _ in games]
            floor = [game.floor for game in games]  # before anyone speaks
            for party in range(2):
                speaking = [row for row, who in enumerate(floor) if who == party]
                for policy, rows in self._speakers(party, speaking, cast):
                    found = self._speak(party, policy, [games[row] for row in rows])
                    for row, info in zip(rows, found):
                        infos[row] = info
            dones = np.array([game.over for game in games]) & ~before
            self.num_timesteps += floor.count(0)
            self._update_info_buffer(infos, dones)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
        self.turns = tuple(
            self._turns(
                [g.played[party] for g, past in zip(games, cast) if not past or past[0] != party]
            )
            for party in range(2)
        )
        return True

    def _speakers(
        self, party: int, rows: list[int], cast: Cast
    ) -> list[tuple[BeliefPolicy, list[int]]]:
        """Policies of a party, each with the rows in which it speaks."""
        groups: dict[int | None, list[int]] = {}
        for row in rows:
            past = cast[row]
            groups.setdefault(past[1] if past and past[0] == party else None, []).append(row)
        own = self.policies[party]
        return [
            (own if place is None else self.past.policy(place, party), found)
            for place, found in groups.items()
        ]

    def _speak(
        self, party: int, policy: BeliefPolicy, games: list[OpenDialogue]
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Let a party choose in the games in which it has the floor; the infos of the learner."""
        acts = [games[0].pair.task.acts[name] for name in self.parties]
        states = [game.pair.dialogue_state for game in games]
        both = [own.observe_many(states) for own in acts]
        masks = maskable(acts[party].mask_many(states), policy.action_space)
        with torch.no_grad():
            seen, _ = policy.obs_to_tensor(both[party])
            actions, _, log_probs = policy(seen, action_masks=masks)
        costs = OwnRewards(self.own_coef, self.empty_cost, self.own_share)
        columns = zip(games, zip(*both), actions.cpu().numpy(), masks, log_probs.tolist())
        return [
            game.choose(party, (*beliefs, chosen, mask, log_prob), costs)
            for game, beliefs, chosen, mask, log_prob in columns
        ]

    def _turns(self, played: list[Played]) -> TwoPartyTurns:
        """The decisions of a party in all dialogues."""
        spoke = [one.columns() for one in played if one.decisions]
        columns = [np.concatenate(column) for column in zip(*spoke)]
        seen, partner, after, partner_after, *rest = (
            torch.as_tensor(column, device=self.device) for column in columns
        )
        return TwoPartyTurns((seen, partner), (after, partner_after), *rest)

    # Update

    def train(self) -> None:
        """Pass over the rollout `n_epochs` times: both policies, and the values."""
        if self._n_updates % self.target_every == 0:
            self.target_values.load_state_dict(self.values.state_dict())
        whole = [self.valued(party, turns) for party, turns in enumerate(self.turns)]
        for policy in self.policies:
            policy.set_training_mode(True)
            self._update_learning_rate(policy.optimizer)
        for _ in range(self.n_epochs):
            for batch in self._batches(whole):
                policy, name = self.policies[batch.party], self.parties[batch.party]
                loss, metrics = self.loss(batch)  # type: ignore[arg-type]
                self.descend(policy.optimizer, loss)
                value_loss = self.value_loss(batch)
                self.descend(self.values_optimizer, value_loss)
                for key, value in {"loss": loss, "value_loss": value_loss, **metrics}.items():
                    self.logger.record_mean(f"train/{name}_{key}", float(value.detach()))
        self._n_updates += 1

    def _batches(self, whole: list[TwoPartyBatch]) -> Iterator[TwoPartyBatch]:
        for one in whole:
            for rows in minibatches(len(one.log_probs), self.batch_size):
                yield one.select(rows)

    @torch.no_grad()
    def valued(self, party: int, turns: TwoPartyTurns) -> TwoPartyBatch:
        """Decisions with their advantages and returns, each of the party's own and global rewards.

        GAE of r + gamma V(s') - V(s) (eqs. 4 to 6), with V of the target network.
        """
        values = torch.stack(self.target_values(turns.both, party), -1)
        following = torch.stack(self.target_values(turns.both_after, party), -1)
        following = following * ~turns.terminated[:, None]
        errors = turns.rewards + self.gamma * following - values
        columns = errors.cpu().numpy(), self.gamma * self.gae_lambda, turns.last.cpu().numpy()
        advantages = errors.new_tensor(discounted_returns(*columns))
        more = turns.actions, turns.masks, turns.log_probs, advantages, advantages + values
        return TwoPartyBatch(party, turns.both, *more)

    def loss(self, batch: TwoPartyBatch) -> tuple[Tensor, dict[str, Tensor]]:  # type: ignore[override]
        """A party's loss: A = A_own + A_global in PPO's clipped objective, less entropy."""
        _, log_prob, entropy = self.policies[batch.party].evaluate_actions(
            batch.both[batch.party], batch.actions, batch.masks
        )
        assert entropy is not None
        advantages = self.normalized(batch.advantages.sum(-1))
        ratio = (log_prob - batch.log_probs).exp()
        clipped = ratio.clamp(1 - self.clip_range, 1 + self.clip_range)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        metrics = {"policy_gradient_loss": policy_loss, "entropy": entropy.mean()}
        return policy_loss - self.ent_coef * entropy.mean(), metrics

    def value_loss(self, batch: TwoPartyBatch) -> Tensor:
        """Squared errors of the party's own and of the common value (eq. 7)."""
        own, common = self.values(batch.both, batch.party)
        return mse_loss(own, batch.returns[:, 0]) + mse_loss(common, batch.returns[:, 1])

    # Stable-Baselines3

    def _excluded_save_params(self) -> list[str]:
        more = ["partner", "pairs", "turns", "target_values", "past"]
        return [*super()._excluded_save_params(), *more]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        more = ["partner_policy", "partner_policy.optimizer", "values", "values_optimizer"]
        past = ["past"] if len(self.past.kept) else []
        return [*modules, *more, "target_values", *past], tensors
