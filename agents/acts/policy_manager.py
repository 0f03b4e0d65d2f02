"""Policies of several domains that learn from the same dialogues, each from its own turns.

Source: Gasic et al. (2017), Dialogue manager domain adaptation using Gaussian process
reinforcement learning, for learning in several domains with shared members; Ultes et al. (2017),
PyDial, for the dialogues.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Unpack

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback

from agents.acts.base import ActLearner
from agents.acts.shared_turns import DomainPart, DomainSide, Turns, parts_of
from agents.learner import RunOptions
from agents.models.act_masks import allowed
from agents.registry import find
from agents.storage.models import load
from agents.storage.models import save as save_model
from agents.updater import check_rewards
from dialgym.errors import one_of
from dialgym.rollouts.policies import takes_masks
from dialgym.views.info import group_of

TOPICS = "topics"
HELLO, ASK = 0, 1
"""Acts of `TOPICS`."""
REWARDS = ("own", "shared")
PROGRESS = "_update_current_progress_remaining"


class ManagerPolicy(BasePolicy):
    """Gives each turn to the policy of the domain that it is about; it has no networks."""

    manager: MultiDomainLearner

    def __init__(
        self, observation_space: spaces.Space, action_space: spaces.Space, lr_schedule: Any = None
    ) -> None:
        super().__init__(observation_space, action_space)

    def _predict(self, observation: Any, deterministic: bool = False) -> Any:
        raise NotImplementedError("ManagerPolicy: call predict of its MultiDomainLearner.")


class MultiDomainLearner(ActLearner, BaseAlgorithm):  # type: ignore[misc]
    """A policy for each domain of one dialogue, each learning from its own turns.

    The topic manager says hello, and asks for the topic until it is known; the turns of a domain
    are those of its policy, whose episode begins there and ends when the domain is over. Each is an
    ordinary model of `learner`, `models["CamRestaurants"]`, which can be saved and played by
    itself. With one domain the model is what `learner` alone would be in that domain.

    Args:
        policy: "ManagerPolicy".
        env: of `SlotFilling-Domains` in its act view, one dialogue at a time.
        learner: name of the algorithm of each domain, such as "gp-sarsa", "dqn" or "acer".
        learner_kwargs: its arguments. Committees (`learner="committee"`) have the members of all
            domains, and ``credit`` says who learns from the turns of one: "own", "equal", "winner"
            or "share".
        rewards: what a domain's policy learns from: its "own" rewards alone; or the "shared" ones,
            where those of the other domains and of the topic manager in the dialogue are added to
            the last one of its own.
        run: further arguments of all learners, see `agents.learner`.

    Attributes:
        models: of each domain, by its name.

    Raises:
        ValueError: an env of another kind, or of several dialogues at a time; an unknown learner or
            argument.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"ManagerPolicy": ManagerPolicy}

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        learner: str = "gp-sarsa",
        learner_kwargs: Mapping[str, Any] | None = None,
        rewards: str = "own",
        _init_setup_model: bool = True,
        **run: Unpack[RunOptions],
    ) -> None:
        one_of("rewards", rewards, REWARDS, "MultiDomainLearner")
        self.learner, self.learner_kwargs = learner, dict(learner_kwargs or {})
        self.rewards = rewards
        self.parts: dict[str, list[int]] = {}
        self.files: dict[str, bytes] = {}
        self.models: dict[str, Any] = {}
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,
            learning_rate=0.0,
            support_multi_env=True,
            supported_action_spaces=(spaces.Discrete,),
            **run,  # type: ignore[arg-type]
        )
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        """The models of the domains, as they were saved where they were."""
        self._check_settings()
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.policy = self.policy_class(self.observation_space, self.action_space)
        self.policy.manager = self
        sides: dict[str, DomainSide] = {}
        if self.env is not None:
            self._check_env()
            acts = self.env.get_attr("acts", 0)[0]
            self.parts = {name: list(part) for name, part in parts_of(acts).items()}
            sides = {n: DomainSide(DomainPart(*self.parts[n]), acts.parts[n]) for n in self.domains}
        self.models = {
            name: self._made(name, i, sides.get(name)) for i, name in enumerate(self.domains)
        }
        self._share_members()

    def _check_env(self) -> None:
        assert self.env is not None
        acts = self.env.get_attr("acts", 0)[0] if self.env.has_attr("acts") else None
        if TOPICS not in getattr(acts, "parts", {}) or self.env.num_envs != 1:
            raise ValueError(
                "MultiDomainLearner: expected the system's act view of SlotFilling-Domains, one "
                f"dialogue at a time (n_envs=1); got {self.env.num_envs} of {acts!r}."
            )

    @property
    def domains(self) -> list[str]:
        """Names of the domains."""
        return [name for name in self.parts if name != TOPICS]

    def _made(self, name: str, number: int, side: DomainSide | None) -> Any:
        if name in self.files:
            return load(io.BytesIO(self.files[name]), device=self.device, env=side)
        if side is None:
            return None
        row = find(self.learner)
        seed = None if self.seed is None else self.seed + number
        given = {"policy": row.policy, "seed": seed, "device": self.device, **self.learner_kwargs}
        return row.load()(env=side, **given)

    def _share_members(self) -> None:
        """Let committees have the members of one another."""
        committees = [model for model in self.models.values() if hasattr(model, "members")]
        shared: dict[str, Any] = {}
        for model in committees:
            shared |= model.members
        shared |= {model.coordinates.domain: model.process for model in committees}
        for model in committees:
            model.members = shared
            for member in shared.values():
                member.widen(model.coordinates.features)

    @property
    def learns_by_sampling(self) -> bool:
        """Return True if a domain's policy draws its acts while it learns."""
        return any(getattr(model, "learns_by_sampling", False) for model in self.models.values())

    # Learning

    def learn(  # type: ignore[override]
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 100,
        tb_log_name: str = "MultiDomainLearner",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Any:
        """Play until so many utterances of the system have been said, and each learns from its own.

        The dialogue that is under way then is played to its end. A run that goes on begins new
        ones, and the models that were loaded for it with empty replay memories.
        """
        self._last_obs = None
        total, hears = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        hears.on_training_start(locals(), globals())
        with self._learning(total) as turns:
            dialogues = 0
            while self.num_timesteps < total and self._play(turns, hears):
                dialogues += 1
                if dialogues % log_interval == 0:
                    self._log()
        hears.on_training_end()
        return self

    @contextmanager
    def _learning(self, total: int) -> Iterator[dict[str, Turns]]:
        """The learners of all domains, each waiting for its first turn."""
        for model in self.models.values():
            vars(model)[PROGRESS] = self._progress_of(model, total)
        turns = {name: Turns(model.env, self._learn_of(model, total))
                 for name, model in self.models.items()}  # fmt: skip
        try:
            yield turns
            for each in turns.values():
                each.end()
        finally:
            for each in turns.values():
                each.stop()
            for model in self.models.values():
                del vars(model)[PROGRESS]

    def _learn_of(self, model: Any, total: int) -> Any:
        more = max(1, total - self.num_timesteps)
        model._last_obs = None  # of dialogues that are not gone on with
        fresh = not model.num_timesteps
        return lambda: model.learn(more, log_interval=10**9, reset_num_timesteps=fresh)

    def _progress_of(self, model: Any, total: int) -> Any:
        """Schedules fall over what all domains learn from together."""

        def update(num_timesteps: int, total_timesteps: int) -> None:
            self._update_current_progress_remaining(self.num_timesteps, total)
            model._current_progress_remaining = self._current_progress_remaining

        return update

    def _play(self, turns: Mapping[str, Turns], callback: BaseCallback) -> bool:
        """Play a dialogue; False where a callback, or a learner that has ended, stops."""
        callback.on_rollout_start()
        self._open: set[str] = set()
        shared, dones = 0.0, np.zeros(1, bool)
        while not dones[0]:
            act = self._choose(turns)
            if act is None:
                return False
            self._last_obs, rewards, dones, infos = self.env.step(np.array([act]))
            check_rewards(rewards, self._where)
            self.num_timesteps += 1
            shared += float(rewards[0])
            self._note(turns, infos[0], bool(dones[0]))
            self._update_info_buffer(infos, dones)
            callback.update_locals(locals())
            if not callback.on_step():
                return False
        self._end(turns, shared, infos[0])
        callback.on_rollout_end()
        return True

    def _choose(self, turns: Mapping[str, Turns]) -> int | None:
        """The act of whose turn it is."""
        seen = self._last_obs[0]  # type: ignore[index]
        owner = self._owner(seen)
        if owner == TOPICS:
            return self._topics(seen)
        self._open.add(owner)
        own = turns[owner].choose(seen, self._mask())
        return None if own is None else self.parts[owner][2] + own

    def _mask(self) -> np.ndarray:
        mask: np.ndarray = allowed(self.env)[0]  # type: ignore[arg-type]
        return mask

    def _owner(self, seen: np.ndarray) -> str:
        return list(self.parts)[int(seen[: len(self.parts)].argmax())]

    def _topics(self, seen: np.ndarray) -> int:
        """Say hello at first, then ask for the topic."""
        first, size, act, _ = self.parts[TOPICS]
        return act + (ASK if seen[first + size - 1] > 0 else HELLO)

    def _note(self, turns: Mapping[str, Turns], info: Mapping[str, Any], over: bool) -> None:
        """Note what a step has brought to each domain, and which is over with it."""
        after = info["terminal_observation"] if over else self._last_obs[0]  # type: ignore[index]
        given = group_of(info, "reward_components")
        for number, (name, each) in enumerate(turns.items()):
            if name not in self._open:
                continue
            own = f"{name}/"
            each.note({k.removeprefix(own): v for k, v in given.items() if k.startswith(own)})
            if over or not self._left(after, number):
                each.finish(after, over and bool(info["TimeLimit.truncated"]))

    def _left(self, seen: np.ndarray, number: int) -> bool:
        """Return True if a domain is not over yet, as `TOPICS` observes it."""
        return bool(seen[self.parts[TOPICS][0] + len(self.domains) + number] > 0)

    def _end(self, turns: Mapping[str, Turns], total: float, info: Mapping[str, Any]) -> None:
        """Complete the reward and success that each domain gets, once the dialogue has ended."""
        metrics = group_of(info, "metrics")
        for name in self._open:
            pending = turns[name].pending
            pending.info["is_success"] = metrics[f"success_{name}"] > 0
            if self.rewards == "shared":
                pending.reward += total - pending.earned

    def _log(self) -> None:
        for key, name in (("r", "ep_rew_mean"), ("l", "ep_len_mean")):
            values = [episode[key] for episode in self.ep_info_buffer or ()]
            if values:
                self.logger.record(f"rollout/{name}", float(np.mean(values)))
        for name, model in self.models.items():
            self.logger.record(f"time/timesteps_{name}", model.num_timesteps)
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(step=self.num_timesteps)

    # Play

    def _predicted(self, observation: Any, deterministic: bool, masks: Any) -> np.ndarray:
        seen = np.asarray(observation)
        rows = seen.reshape(-1, seen.shape[-1])
        allow = [None] * len(rows) if masks is None else np.asarray(masks).reshape(len(rows), -1)
        acts = np.array([self._act(*each, deterministic) for each in zip(rows, allow)])
        return acts if seen.ndim > 1 else acts[0]  # type: ignore[no-any-return]

    def _act(self, seen: np.ndarray, mask: np.ndarray | None, deterministic: bool) -> int:
        owner = self._owner(seen)
        if owner == TOPICS:
            return self._topics(seen)
        part, model = DomainPart(*self.parts[owner]), self.models[owner]
        within = mask is not None and takes_masks(model)
        masks = {"action_masks": part.allow(mask)[None]} if within else {}  # type: ignore[arg-type]
        acts, _ = model.predict(part.see(seen), deterministic=deterministic, **masks)
        return part.first_act + int(acts[0])

    # Stable-Baselines3

    def save(
        self,
        path: Any,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """See `agents.save`; the models of the domains are in the file."""
        self.files = {name: _file_of(model) for name, model in self.models.items()}
        super().save(path, exclude, include)
        self.files = {}

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "models", "_open"]


def _file_of(model: Any) -> bytes:
    file = io.BytesIO()
    save_model(model, file, exclude=[PROGRESS])
    return file.getvalue()
