"""From a recipe to dialogues, a shard at a time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dialgym.datasets.play import play_predictor, play_speaker
from dialgym.datasets.schema import Origin, Recorder, check_json
from dialgym.datasets.vocabulary import fingerprint
from dialgym.registry import entry_of
from dialgym.simulators import Speaker
from dialgym.views.episodes import Report, make_dialogue, make_token_batch
from dialgym.views.policies import Policy, open_policy, policy_name


@dataclass(frozen=True)
class Recipe:
    """What determines dialogues; the arguments are those of `collect`."""

    env: str
    policy: Policy
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
        facts = {**self.__dict__, "policy": self.name}
        facts["env_kwargs"] = dict(self.env_kwargs)
        facts["policy_kwargs"] = {k: _plain(v) for k, v in self.policy_kwargs.items()}
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
        self.recipe, self.entry = recipe, entry_of(recipe.env)
        check_json(recipe.env_kwargs, f"env_kwargs of {self.entry.id}")
        check_json(recipe.options, f"options of {self.entry.id}")
        self.dialogue = make_dialogue(self.entry, recipe.env_kwargs)
        self.policy = self._open()
        self._env: Any = None

    def _open(self) -> Any:
        recipe, dialogue = self.recipe, self.dialogue
        opened = open_policy(recipe.policy, [dialogue])
        if isinstance(opened, str):
            return self._named(opened)
        if recipe.policy_kwargs:
            raise ValueError(
                f"policy_kwargs are for registered names; got {dict(recipe.policy_kwargs)!r} with "
                f"{recipe.name!r}. Give the policy its settings yourself."
            )
        return opened

    def _named(self, name: str) -> Any:
        task, kwargs = self.dialogue.task, self.recipe.policy_kwargs
        try:
            return task.speaker_named(self.dialogue.learner, name, **kwargs)
        except TypeError as error:
            raise ValueError(
                f"policy_kwargs of {name!r}: it does not take {dict(kwargs)!r} ({error}). "
                "Look up its settings, or leave them out."
            ) from error

    def table(self, episodes: range, report: Report) -> Any:
        """The dialogues of some episodes as an Arrow table, in their order."""
        recipe = self.recipe
        jobs = [(recipe.seed, episode) for episode in episodes]
        recorder = Recorder(self._origin())
        if isinstance(self.policy, Speaker):
            play_speaker(self.policy, self.dialogue, jobs, recipe.options, recorder, report)
        else:
            play_predictor(
                self.policy, self._batch(), jobs, recipe.options, recorder, report,
                recipe.deterministic,
            )  # fmt: skip
        return recorder.table()

    def _batch(self) -> Any:
        if self._env is None:
            recipe = self.recipe
            kwargs = recipe.env_kwargs
            self._env = make_token_batch(self.entry, recipe.num_envs, kwargs, "NextStep")
        return self._env

    def _origin(self) -> Origin:
        ids = "" if isinstance(self.policy, Speaker) else fingerprint(self._batch().tokenizer)
        recipe, learner = self.recipe, self.dialogue.learner
        return Origin(self.entry.id, recipe.env_kwargs, learner, recipe.name, ids)


def recipe_of(env: str, policy: Policy, seed: int, name: str | None, **more: Any) -> Recipe:
    """A recipe with checked numbers.

    Raises:
        ValueError: a number is impossible.
    """
    recipe = Recipe(env, policy, seed, name or policy_name(policy), **more)
    for what, least in (("seed", 0), ("num_envs", 1), ("shard_size", 1)):
        whole_number(what, getattr(recipe, what), least)
    return recipe


def whole_number(what: str, value: Any, least: int) -> None:
    """Raise a ValueError unless `value` is a whole number from `least`."""
    if not isinstance(value, int) or value < least:
        raise ValueError(f"collect: {what} must be a whole number from {least}; got {value!r}.")
