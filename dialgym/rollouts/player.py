"""`Player`: an environment and a policy, opened once, that play any number of episodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from dialgym.errors import with_settings
from dialgym.io.objects import load, resolve
from dialgym.io.saved_models import find_checkpoint
from dialgym.kinds import numeric_kinds
from dialgym.registry import Environment, RegistryEntry, check_id, entry_of
from dialgym.rollouts.episode_batch import EpisodeBatch
from dialgym.rollouts.episodes import Job, Report
from dialgym.rollouts.games import (
    OpenDialogue,
    log_games,
    play_games,
    relay_games,
    script_games,
    speaker_games,
    tree_games,
)
from dialgym.rollouts.policies import (
    Policy,
    named_policies,
    no_settings,
    open_policy,
    policy_name,
    training_place,
    with_own_settings,
)
from dialgym.rollouts.waves import SIZE, play_batch, play_env
from dialgym.simulators import BatchSpeaker, Speaker, is_oracle
from dialgym.simulators.base import waits
from dialgym.tasks import ActPolicy, DialogueBatch, Task
from dialgym.tasks.generators import Logs, Relay, Scripts, Tree
from dialgym.trust import check_names
from dialgym.views.arguments import Options
from dialgym.views.dialogue import Dialogue, LoopedBatch
from dialgym.views.extras import check_extras
from dialgym.views.making import make_vec, split_kwargs
from dialgym.views.options import REWARD_OPTIONS, ViewOptions
from dialgym.views.speakers import find_speaker

Source = Policy | Tree | Relay | Scripts | Logs
"""Sources of dialogues."""
GENERATORS = (Tree, Relay, Scripts, Logs)


def make_dialogue(env: Environment, kwargs: Mapping[str, Any]) -> Dialogue:
    """The dialogue that a view of `env`, made with `kwargs`, would hold.

    Raises:
        ValueError: the view would refuse them, though it is not made.
    """
    entry = entry_of(env)
    parts = split_kwargs(entry, load(entry.kind.single), kwargs)
    task, learner = parts["task"], parts.get("learner", "system")
    names = {one.name for one in fields(ViewOptions)}
    options = ViewOptions(**{name: parts[name] for name in names & parts.keys()})
    options.check(task.name)
    check_extras(task, options)
    return Dialogue(task, learner, find_speaker(task, learner, parts.get("simulator")))


def rules_of(env: Environment, kwargs: Mapping[str, Any]) -> Task:
    """The rules that a view of `env`, made with `kwargs`, would have, whoever the other party is.

    Raises:
        ValueError: as of `make_dialogue`.
    """
    return make_dialogue(env, {**kwargs, "simulator": None}).task


def policy_names(entries: Iterable[RegistryEntry], kwargs: Mapping[str, Any]) -> set[str]:
    """The names of the policies that some environments have."""
    dialogues = [(make_dialogue(entry, kwargs), entry.view) for entry in entries]
    return {name for d, view in dialogues for name in named_policies(d.task, d.learner, view)}


def open_where_trained(
    policy: Policy, trust: bool = False, settings: Mapping[str, Any] | None = None
) -> tuple[Any, RegistryEntry, dict[str, Any]]:
    """A trained policy, the environment that it was trained in, and the settings of that.

    Raises:
        ValueError: the policy does not tell: it is a scripted one, or of an older file; or the
            file names code that nobody has said (see `dialgym.trust`).
        ValueError, FileNotFoundError, ImportError: as in `open_policy`, which says what `trust` and
            `settings` are.
    """
    named = isinstance(policy, str) and not {"/", "\\", "."} & set(policy)
    if isinstance(policy, str) and named and find_checkpoint(policy) is None:
        raise ValueError(
            f"policy {policy!r}: expected an environment too, which only a trained policy tells, "
            f"and there is no run or checkpoint of that name. Name one, as in "
            f"`dialgym evaluate {policy} Wordle-20-v0`."
        )
    opened = open_policy(policy, trust=trust, settings=settings)
    home = training_place(opened)
    if home is None:
        raise ValueError(
            f"{policy_name(policy)} does not say where it was trained. Name the environment, as in "
            "`dialgym evaluate POLICY Wordle-20-v0`."
        )
    where = f"{policy_name(policy)}, trained_in"
    if not trust:
        check_id(home["id"], where)
    check_names(home["settings"], where, trust)
    if home["left_out"]:
        raise ValueError(
            f"{where}: it was trained with {', '.join(home['left_out'])} given as objects, which "
            "a file does not hold. Name the environment, and give them again."
        )
    return opened, entry_of(home["id"]), dict(home["settings"])


class Player:
    """Plays episodes of an environment with a policy.

    A policy with `predict` plays many dialogues at once in the batched view, a scripted one that
    has `reply_many` in the task's vectorised form, if there is one. Where it or the other party
    waits for something else, such as a service, `num_envs` dialogues are played at once, too, and
    it is asked in rounds. Any other plays one dialogue after the other. The dialogues are the same.

    Args:
        env: an id, or what stands for one.
        policy: a registered name, an object with ``reply(task, state, rng) -> str``, with
            ``act(task, state, rng)``, or with Stable-Baselines3's ``predict``, a path to a
            checkpoint; ``openai:MODEL``; a mapping of a ``name`` and settings; or a generator of
            the task, by name or object.
        env_kwargs: as for ``gym.make(id, ...)``.
        policy_kwargs: settings of a registered policy, or of how a saved model speaks, see
            `agents.with_decoding`.
        num_envs: dialogues at once, for a policy with `predict` and for one that waits.
        deterministic: such a policy takes the likeliest action, else samples.
        record: what is said is kept, and on an act view what is chosen; see `EpisodeBatch`. There a
            policy that has both `reply` and `act` then chooses acts, and else speaks.
        trust: a checkpoint may be a pickle, which can run code of whoever made it.
        states: the dialogues are kept as they ended.

    Raises:
        ValueError: the id, a setting or the policy is impossible.
        FileNotFoundError: there is no such checkpoint.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """

    def __init__(
        self,
        env: Environment,
        policy: Source,
        env_kwargs: Mapping[str, Any] | None = None,
        *,
        policy_kwargs: Mapping[str, Any] | None = None,
        num_envs: int = 128,
        deterministic: bool = True,
        record: bool = False,
        trust: bool = False,
        states: bool = False,
    ) -> None:
        self.states = states
        self.entry, self.env_kwargs = entry_of(env), dict(env_kwargs or {})
        policy, settings = with_own_settings(policy, policy_kwargs)
        self.name = _name_of(policy)
        self.num_envs, self.deterministic, self.record = num_envs, deterministic, record
        self.dialogue = make_dialogue(self.entry, self.env_kwargs)
        self.task, self.learner = self.dialogue.task, self.dialogue.learner
        opened = self._open(policy, settings, trust)
        self.policy: Any = self._as_played(opened)
        if self._predicts and not self.entry.kind.numeric:
            raise ValueError(
                f"a policy with predict() plays {numeric_kinds()} views here; got "
                f"{self.entry.id!r} ({self.entry.view} view). Use {self.entry.row.id('token')!r}."
            )

    @property
    def _predicts(self) -> bool:
        return not isinstance(self.policy, (Speaker, ActPolicy, *GENERATORS))

    @property
    def chooses_acts(self) -> bool:
        """Tell if the policy chooses acts, rather than words or tokens."""
        by_acts = self._predicts or not isinstance(self.policy, (Speaker, Tree, Scripts))
        return self.entry.kind.of_acts and by_acts

    @property
    def tokenizer(self) -> Any:
        """Tokenizer of the ids that the policy says; None where it speaks in text or by acts."""
        return getattr(self.env, "tokenizer", None) if self._predicts else None

    @cached_property
    def env(self) -> Any:
        """The batched view, for a policy with `predict`."""
        own = {name: v for name, v in self.env_kwargs.items() if name not in REWARD_OPTIONS}
        kwargs = {**own, "autoreset_mode": "Disabled"}
        return make_vec(self.entry, self.num_envs, **kwargs).unwrapped

    def play(
        self,
        jobs: Sequence[Job],
        options: Options | None = None,
        report: Report = lambda ended: None,
    ) -> Iterator[EpisodeBatch]:
        """Play episodes, a pair of seed and number each, in their order.

        Args:
            jobs: the episodes.
            options: of every reset, or of that of each episode; they fix hidden parts of it.
            report: called with the number of episodes that have just ended.

        Raises:
            ValueError: the options are of another number of episodes.
        """
        policy, fixed = self.policy, _by_job(options, len(jobs))
        record, states = self.record, self.states
        if self._predicts:
            best = self.deterministic
            return play_env(policy, self.env, jobs, fixed, record, report, best, states)
        if isinstance(policy, Scripts | Logs):
            self._check_options(fixed)
        size = self.num_envs if self._waits else SIZE
        batch = self._batch(min(size, len(jobs)))
        if batch is None:
            return play_games(self._games, jobs, fixed, record, report, states)
        return play_batch(
            policy, self.task, self.learner, batch, jobs, fixed, record, report, size, states
        )

    def play_one(
        self, job: Job, options: Mapping[str, Any] | None = None
    ) -> tuple[Dialogue, EpisodeBatch]:
        """Play one episode: the dialogue at its end, and how it went.

        Where its policy has `predict`, the player must be of one dialogue at once.
        """
        (played,) = self.play([job], options)
        if self._predicts:
            (state,) = self.env.dialogues.states(np.zeros(1, np.int64))
            self.dialogue.restore(state, int(played.lengths[0]))
        return self.dialogue, played

    def close(self) -> None:
        """Close the batched view, if there is one."""
        if "env" in self.__dict__:
            self.env.close()

    @property
    def _waits(self) -> bool:
        """Tell if a party waits for something else, so that dialogues are played at once."""
        return waits(self.policy) or waits(self.dialogue.other)

    def _batch(self, size: int) -> DialogueBatch | None:
        """Dialogues that the policy plays at once; None where it plays one after the other."""
        if size < 2 or self.chooses_acts or not isinstance(self.policy, Speaker):
            return None
        other, batch = self.dialogue.other, None
        if isinstance(self.policy, BatchSpeaker):
            batch = self.task.batch(size, self.learner, other)
        if batch is None and self._waits:
            return LoopedBatch(self.task, size, self.learner, other)
        return batch

    def _games(self, job: Job, options: Mapping[str, Any]) -> Iterable[OpenDialogue]:
        """Play the dialogues of one episode."""
        policy, dialogue, record = self.policy, self.dialogue, self.record
        acts = self.task.acts[self.learner] if self.chooses_acts else None
        if isinstance(policy, Tree):
            return tree_games(policy, dialogue, job, options)
        if isinstance(policy, Scripts):
            return script_games(policy, dialogue, job)
        if isinstance(policy, Logs):
            return log_games(policy, dialogue, job, acts, record)
        if isinstance(policy, Relay):
            return relay_games(policy, dialogue, job, options, acts, record)
        return speaker_games(policy, dialogue, job, options, acts, record)

    def _open(self, policy: Source, settings: dict[str, Any], trust: bool) -> Any:
        """The policy as an object."""
        named = {
            **named_policies(self.task, self.learner, self.entry.view, acts_first=self.record),
            **self.task.generators,
        }
        if isinstance(policy, GENERATORS):
            if settings:
                raise no_settings(policy, settings)
            return policy
        opened = open_policy(policy, named, self.learner, trust, settings)
        if isinstance(opened, str):
            what = f"the policy {opened!r}"
            return with_settings(resolve(named[opened], what), what, settings)
        return opened

    def _as_played(self, policy: Any) -> Any:
        """A policy that can do both is asked for acts where they are to be kept, else for words."""
        if not isinstance(policy, ActPolicy):
            return policy
        if self.entry.kind.of_acts:
            return policy if isinstance(policy, Speaker) and not self.record else _Chooser(policy)
        if isinstance(policy, Speaker):
            return policy
        raise ValueError(
            f"a policy with act() plays act views; got {self.entry.id!r} ({self.entry.view} view). "
            "Give one with reply(task, state, rng), or use an act view."
        )

    def _check_options(self, options: Sequence[Mapping[str, Any]]) -> None:
        if given := [*filter(None, options)]:
            raise ValueError(
                f"options: the dialogues of {self.name!r} bring their own; got "
                f"{given[0]!r}. Leave them out."
            )


def _by_job(options: Options | None, count: int) -> list[Mapping[str, Any]]:
    """Options of the reset of each of `count` episodes."""
    if options is None or isinstance(options, Mapping):
        return [dict(options or {})] * count
    if len(options) != count:
        raise ValueError(
            f"options: expected a mapping, or one for each of {count} episodes; got {len(options)}."
        )
    return [dict(own) for own in options]


class _Chooser:
    """An act policy that is asked for acts, whatever else it can do."""

    def __init__(self, policy: ActPolicy) -> None:
        self.act, self.oracle = policy.act, is_oracle(policy)


def _name_of(policy: Source) -> str:
    return policy_name(policy) if isinstance(policy, (str, PathLike)) else type(policy).__name__
