"""The recipe of a collection, its shards, and the folder of files that they fill."""

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.datasets.schema import (
    Origin,
    Recorder,
    acts_name,
    arrow,
    check_json,
    check_table,
    fingerprint,
    played_settings,
    read_tables,
    write_table,
)
from dialgym.errors import whole_number
from dialgym.io.checksums import remove_checked
from dialgym.io.files import read_json, write_text
from dialgym.io.hub import check_commits, commits
from dialgym.io.model_settings import BudgetSpentError
from dialgym.io.saved_models import find_checkpoint
from dialgym.registry import RegistryEntry
from dialgym.rollouts import Player, Report
from dialgym.rollouts.player import Source
from dialgym.rollouts.policies import policy_name
from dialgym.simulators.language_model import is_language_model, spoken_settings
from dialgym.versions import VERSION

RECIPE = "collection.json"
HUB = "hub"
"""Of the recipe's file: `dialgym.io.hub.commits`."""
VERSIONS = "dialgym"
"""Of the recipe's file: the versions of dialgym that have collected, in their order."""
SURROUNDINGS = "surroundings"
"""Of the recipe's file: a hash of `Task.surroundings`, such as the files of a domain."""
SHARD = re.compile(r"dialogues-(\d+)-(\d+)\.parquet")


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a collection; the arguments of `collect`."""

    env: RegistryEntry
    policy: Source
    seed: int
    name: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    num_envs: int = 128
    shard_size: int = 2048
    trust: bool = False

    def episodes(self, shard: int, total: int) -> range:
        """The episodes of a shard, where there are `total` in all."""
        return range(shard * self.shard_size, min((shard + 1) * self.shard_size, total))

    def shards(self, total: int) -> int:
        """Number of shards that `total` episodes fill."""
        return -(-total // self.shard_size)

    def facts(self) -> dict[str, Any]:
        """The recipe as plain values, to tell one from another."""
        facts = {**self.__dict__, "env": self.env.id, "policy": self.name}
        del facts["trust"]
        facts["env_kwargs"] = _of_words(self.env_kwargs)
        own = {"name": self.policy, **self.policy_kwargs}
        facts["policy_kwargs"] = {k: _plain(v) for k, v in _of_words(own).items() if k != "name"}
        if isinstance(self.policy, (str, PathLike)) and (file := find_checkpoint(self.policy)):
            facts["checkpoint"] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        return facts


def _of_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those of language models that do not change the words."""
    kept = spoken_settings(settings) if is_language_model(settings.get("name")) else settings
    return {key: _of_words(v) if isinstance(v, Mapping) else v for key, v in kept.items()}


def _plain(value: Any) -> Any:
    try:
        json.dumps(value)
    except TypeError:
        return type(value).__name__
    return value


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a budget that is spent, while episodes were played.

    Attributes:
        episodes: that are over.
        table: their dialogues.
    """

    def __init__(self, episodes: range, table: Any) -> None:
        super().__init__("interrupted; whole shards are kept")
        self.episodes, self.table = episodes, table

    @property
    def reason(self) -> BaseException:
        """The error to go on with, once the dialogues are kept."""
        return self.__cause__ if isinstance(self.__cause__, BudgetSpentError) else self


class Collector:
    """A recipe's environment and policy, opened once for all of its shards.

    Raises:
        ValueError: the recipe's id, settings or policy are impossible.
        FileNotFoundError: its checkpoint does not exist.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        check_json(recipe.env_kwargs, f"env_kwargs of {recipe.env.id}")
        check_json(recipe.options, f"options of {recipe.env.id}")
        self.player = Player(
            recipe.env,
            recipe.policy,
            recipe.env_kwargs,
            policy_kwargs=recipe.policy_kwargs,
            num_envs=recipe.num_envs,
            deterministic=recipe.deterministic,
            record=True,
            trust=recipe.trust,
        )

    def facts(self) -> dict[str, Any]:
        """Facts of the recipe, and the state of the files of its environment."""
        task = self.player.task
        state = task.surroundings(task.made_with or {})
        digest = None if state is None else hashlib.sha256(repr(state).encode()).hexdigest()[:16]
        return {**self.recipe.facts(), SURROUNDINGS: digest}

    def table(self, episodes: range, report: Report) -> Any:
        """The dialogues of some episodes as an Arrow table, in their order.

        Raises:
            Interrupted: Ctrl-C was pressed, or a budget is spent; it has the dialogues of the
                episodes before.
        """
        jobs = [(self.recipe.seed, episode) for episode in episodes]
        recorder, stop = Recorder(self._origin(), self.recipe.options), episodes.start
        try:
            for played in self.player.play(jobs, self.recipe.options, report):
                recorder.add(played)
                stop = max(stop, int(played.episodes[-1]) + 1)
        except (KeyboardInterrupt, BudgetSpentError) as error:
            raise Interrupted(range(episodes.start, stop), recorder.table()) from error
        return recorder.table()

    def _origin(self) -> Origin:
        player, acts = self.player, ""
        if player.chooses_acts:
            chosen = player.task.acts[player.learner]
            acts = acts_name(chosen.names, chosen.size)
        settings = played_settings(self.recipe.env_kwargs, player.dialogue)
        ids = fingerprint(player.tokenizer) if player.tokenizer else ""
        name = self.recipe.name
        return Origin(self.recipe.env.id, settings, player.learner, name, ids, acts)


def recipe_of(
    env: RegistryEntry, policy: Source, seed: int, name: str | None, **more: Any
) -> Recipe:
    """A recipe with checked numbers.

    Raises:
        ValueError: a number is impossible.
    """
    called = name or (policy_name(policy) if isinstance(policy, (str, PathLike)) else "")
    recipe = Recipe(env, policy, seed, called or type(policy).__name__, **more)
    for what, least in (("seed", 0), ("num_envs", 1), ("shard_size", 1)):
        whole_number(what, getattr(recipe, what), "collect", least)
    return recipe


class Folder:
    """The files of one collection; the name of each says which episodes it holds.

    Each file was written as a whole; its checksum tells if it is damaged. The missing episodes are
    those of no whole file.

    Args:
        path: where the files are.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def prepare(self, collector: Collector, episodes: int) -> list[range]:
        """Prepare the folder for `episodes` of a collector; return the missing shards.

        Raises:
            ValueError: it holds another collection, or a longer one.
        """
        recipe = collector.recipe
        self._claim(collector.facts())
        wanted = [recipe.episodes(shard, episodes) for shard in range(recipe.shards(episodes))]
        have = self.files()
        longest = max((part.stop for part in have), default=0)
        if longest > episodes:
            raise ValueError(
                f"collect: {str(self.path)!r} holds {longest} episodes already; got "
                f"episodes={episodes}. Load it with load_dataset, or give another path."
            )
        missing = [
            part for part in wanted if part not in have or self._is_damaged(part, have[part])
        ]
        begun = {self.begun(part, recipe) for part in missing}
        for part in have.keys() - set(wanted):  # of a shorter, or an interrupted, collection
            if part not in begun or self._is_damaged(part, have[part]):
                remove_checked(have.pop(part))
        if missing:
            self._note_version()
        return missing

    def begun(self, part: range, recipe: Recipe) -> range:
        """The first episodes of a shard that a shorter file has already; it may be empty.

        Only so many that what follows is played as in one go: an agent is seeded once for
        `num_envs` dialogues.
        """
        shorter = [r for r in self.files() if r.start == part.start and r.stop < part.stop]
        whole = [r for r in shorter if len(r) % recipe.num_envs == 0]
        return max(whole, key=len, default=range(part.start, part.start))

    def complete(self, part: range, collector: Collector, report: Report) -> None:
        """Collect the missing episodes of a shard and write it, also if interrupted.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
            BudgetSpentError: the budget of a language model is spent.
        """
        begun = self.begun(part, collector.recipe)
        before = [read_tables([self.files()[begun]])] if begun else []
        try:
            fresh = collector.table(range(begun.stop, part.stop), report)
        except Interrupted as cut:
            if cut.episodes:
                self._replace(begun, range(part.start, cut.episodes.stop), [*before, cut.table])
            raise cut.reason from None
        self._replace(begun, part, [*before, fresh])

    def _replace(self, begun: range, part: range, tables: list[Any]) -> None:
        former = self.files().get(begun)
        self.write(part, arrow().concat_tables(tables))
        if begun and former:
            remove_checked(former)

    def _is_damaged(self, part: range, file: Path) -> bool:
        """Return True, with a warning, if a shard is not what was written."""
        try:
            rows = check_table(file)
        except ValueError as error:
            warnings.warn(f"{error} Its episodes are collected again.", stacklevel=5)
            return True
        return rows < len(part)

    def _claim(self, facts: dict[str, Any]) -> None:
        file = self.path / RECIPE
        if not any(self.path.glob("*.parquet")):  # nothing is there, or a failed beginning
            write_text(file, json.dumps(facts, indent=1))
            return
        if not file.exists():
            raise ValueError(
                f"collect: {str(self.path)!r} holds Parquet files of something else. "
                "Give another path."
            )
        before = self._described(file)
        check_commits(before.get(HUB), f"collect: {str(file)!r}")
        state = facts.pop(SURROUNDINGS)
        changed = [k for k in facts if json.dumps(before.get(k)) != json.dumps(facts[k])]
        if changed:
            what = ", ".join(f"{k} {before.get(k)!r}, now {facts[k]!r}" for k in changed)
            raise ValueError(
                f"collect: {str(self.path)!r} holds another collection ({what}). "
                "Give the same arguments to go on with it, or another path."
            )
        if before.get(SURROUNDINGS) != state:
            raise ValueError(
                f"collect: {str(self.path)!r} was begun with other files than {facts['env']} is "
                "made of now: those that its settings or environment variables name have changed, "
                "or lie elsewhere. Put them back to go on with it, or give another path."
            )

    def _note_version(self) -> None:
        """Write down the version that collects; warn if it differs from that before."""
        facts, own = self._described(self.path / RECIPE), VERSION
        before = facts.get(VERSIONS) or []
        if own in before[-1:]:
            return
        if before:
            warnings.warn(
                f"collect: {str(self.path)!r} was begun with dialgym {before[-1]} and goes on with "
                f"{own}: where the rules have changed, its dialogues are of both. Another path "
                "begins again.",
                stacklevel=4,
            )
        write_text(self.path / RECIPE, json.dumps({**facts, VERSIONS: [*before, own]}, indent=1))

    def _described(self, file: Path) -> dict[str, Any]:
        description = read_json(file, "what determines a collection, as JSON")
        if not isinstance(description, dict) or "env" not in description:
            raise ValueError(
                f"collect: {str(file)!r}: expected what determines a collection; got "
                f"{str(description)[:60]!r}. Remove the folder to collect again, or give another "
                "path."
            )
        return description

    def files(self) -> dict[range, Path]:
        """The files by their episodes, in order."""
        by_episodes = {}
        for file in sorted(self.path.glob("dialogues-*.parquet")):
            if match := SHARD.fullmatch(file.name):
                by_episodes[range(int(match[1]), int(match[2]))] = file
        return by_episodes

    def note_hub(self) -> None:
        """Write down the commits of everything that was read from the hub."""
        if read := commits():
            facts = self._described(self.path / RECIPE)
            write_text(self.path / RECIPE, json.dumps({**facts, HUB: read}, indent=1))

    def write(self, part: range, table: Any) -> None:
        """Write a shard, whole or not at all."""
        file = self.path / f"dialogues-{part.start:09d}-{part.stop:09d}.parquet"
        write_table(file, table)

    def tidy(self) -> None:
        """Remove the temporary files of killed collectors: who holds the lock writes alone."""
        for file in self.path.glob(".dialogues-*.parquet*"):
            file.unlink(missing_ok=True)
