"""From a recipe to dialogues, a shard at a time."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from os import PathLike
from typing import Any

from dialgym.datasets.generate import play_scripts, play_tree
from dialgym.datasets.play import play_predictor, play_speaker
from dialgym.datasets.play_many import SIZE, play_many
from dialgym.datasets.schema import Origin, Recorder, check_json, played_settings
from dialgym.datasets.vocabulary import fingerprint
from dialgym.errors import unknown
from dialgym.registry import Entry
from dialgym.simulators import BatchSpeaker, Speaker
from dialgym.tasks import DialogueBatch
from dialgym.tasks.generators import Scripts, Tree
from dialgym.views.episodes import Job, Report, make_dialogue, make_numeric_batch
from dialgym.views.policies import Policy, find_checkpoint, open_policy, policy_name

Source = Policy | Tree | Scripts
"""What dialogues can come from."""


@dataclass(frozen=True)
class Recipe:
    """What determines dialogues; the arguments are those of `collect`."""

    env: Entry
    policy: Source
    seed: int
    name: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    num_envs: int = 128
    shard_size: int = 2048

    def episodes(self, shard: int, total: int) -> range:
        """The episodes of a shard, where there are `total` in all."""
        return range(shard * self.shard_size, min((shard + 1) * self.shard_size, total))

    def shards(self, total: int) -> int:
        """How many shards `total` episodes fill."""
        return -(-total // self.shard_size)

    def facts(self) -> dict[str, Any]:
        """All of it as plain values, to tell one recipe from another."""
        facts = {**self.__dict__, "env": self.env.id, "policy": self.name}
        facts["env_kwargs"] = dict(self.env_kwargs)
        facts["policy_kwargs"] = {k: _plain(v) for k, v in self.policy_kwargs.items()}
        if isinstance(self.policy, (str, PathLike)) and (file := find_checkpoint(self.policy)):
            facts["checkpoint"] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        return facts


def _plain(value: Any) -> Any:
    try:
        json.dumps(value)
    except TypeError:
        return type(value).__name__
    return value


class Collector:
    """A recipe's environment and policy, opened once for all of its shards.

    Raises:
        ValueError: the recipe's id, settings or policy are impossible.
        FileNotFoundError: its checkpoint does not exist.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.entry = recipe, recipe.env
        check_json(recipe.env_kwargs, f"env_kwargs of {self.entry.id}")
        check_json(recipe.options, f"options of {self.entry.id}")
        self.dialogue = make_dialogue(self.entry, recipe.env_kwargs)
        self.policy = self._open()
        self._env: Any = None

    def _open(self) -> Any:
        recipe, dialogue = self.recipe, self.dialogue
        task, policy = dialogue.task, recipe.policy
        if isinstance(policy, str) and policy in task.generators:
            return self._with_settings(task.generators[policy])
        if isinstance(policy, (Tree, Scripts)):
            opened: Any = policy
        else:
            self._check_name(policy)
            opened = open_policy(policy, [dialogue])
        if isinstance(opened, str):
            return self._with_settings(task.speakers[dialogue.learner][opened])
        if recipe.policy_kwargs:
            raise ValueError(
                f"policy_kwargs are for registered names; got {dict(recipe.policy_kwargs)!r} with "
                f"{recipe.name!r}. Give the policy its settings yourself."
            )
        return opened

    def _with_settings(self, make: Callable[..., Any]) -> Any:
        kwargs, name = self.recipe.policy_kwargs, self.recipe.name
        known = signature(make).parameters
        for setting in kwargs:
            if setting not in known:
                raise unknown("setting", setting, known, f"the policy {name!r}")
        for setting, parameter in known.items():
            if parameter.default is parameter.empty and setting not in kwargs:
                raise ValueError(
                    f"the policy {name!r} needs the setting {setting!r}; got none. Give it as "
                    f"policy_kwargs={{{setting!r}: ...}} or --param {setting}=..."
                )
        return make(**kwargs)

    def _check_name(self, policy: Any) -> None:
        """A mistaken name is told what it could have been, generators included."""
        task, learner = self.dialogue.task, self.dialogue.learner
        names = [*task.speakers.get(learner, {}), *task.generators]
        plain = isinstance(policy, str) and not {"/", "\\", "."}.intersection(policy)
        if plain and policy not in names and find_checkpoint(policy) is None:
            error = unknown(f"policy for the {learner}", policy, names)
            raise ValueError(f"{error} The path of a checkpoint will do as well.")

    def table(self, episodes: range, report: Report) -> Any:
        """The dialogues of some episodes as an Arrow table, in their order."""
        recipe = self.recipe
        jobs = [(recipe.seed, episode) for episode in episodes]
        recorder = Recorder(self._origin())
        if isinstance(self.policy, Tree):
            play_tree(self.policy, self.dialogue, jobs, recipe.options, recorder, report)
        elif isinstance(self.policy, Scripts):
            if recipe.options:
                raise ValueError(
                    f"options: the dialogues of {recipe.name!r} bring their own; got "
                    f"{dict(recipe.options)!r}. Leave them out."
                )
            play_scripts(self.policy, self.dialogue, jobs, recorder, report)
        elif isinstance(self.policy, Speaker):
            self._play_speaker(jobs, recorder, report)
        else:
            play_predictor(
                self.policy, self._batch(), jobs, recipe.options, recorder, report,
                recipe.deterministic,
            )  # fmt: skip
        return recorder.table()

    def _play_speaker(self, jobs: Sequence[Job], recorder: Recorder, report: Report) -> None:
        options, dialogue = self.recipe.options, self.dialogue
        many = self._vectorised() if isinstance(self.policy, BatchSpeaker) else None
        if many is None:
            play_speaker(self.policy, dialogue, jobs, options, recorder, report)
        else:
            play_many(self.policy, dialogue.task, many, jobs, options, recorder, report)

    def _vectorised(self) -> DialogueBatch | None:
        """The task's own vectorised form, where it has one for these settings."""
        dialogue = self.dialogue
        return dialogue.task.batch(SIZE, dialogue.learner, dialogue.other)

    def _batch(self) -> Any:
        if self._env is None:
            recipe = self.recipe
            kwargs = recipe.env_kwargs
            self._env = make_numeric_batch(
                self.entry, recipe.num_envs, kwargs, "NextStep", views=("token",)
            )
        return self._env

    def _origin(self) -> Origin:
        text = isinstance(self.policy, (Speaker, Tree, Scripts))
        ids = "" if text else fingerprint(self._batch().tokenizer)
        recipe, dialogue = self.recipe, self.dialogue
        settings = played_settings(recipe.env_kwargs, dialogue)
        return Origin(self.entry.id, settings, dialogue.learner, recipe.name, ids)


def recipe_of(env: Entry, policy: Source, seed: int, name: str | None, **more: Any) -> Recipe:
    """A recipe with checked numbers.

    Raises:
        ValueError: a number is impossible.
    """
    called = name or (policy_name(policy) if isinstance(policy, (str, PathLike)) else "")
    recipe = Recipe(env, policy, seed, called or type(policy).__name__, **more)
    for what, least in (("seed", 0), ("num_envs", 1), ("shard_size", 1)):
        whole_number(what, getattr(recipe, what), least)
    return recipe


def whole_number(what: str, value: Any, least: int) -> None:
    """Raise a ValueError unless `value` is a whole number from `least`."""
    if not isinstance(value, int) or value < least:
        raise ValueError(f"collect: {what} must be a whole number from {least}; got {value!r}.")
