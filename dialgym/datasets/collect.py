"""`collect`: dialogues of a policy as a dataset, in memory or in a folder of shards."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict, Unpack

from dialgym.datasets.collector import Collector, Folder, Interrupted, Recipe, recipe_of
from dialgym.datasets.dataset import Dataset
from dialgym.datasets.schema import arrow, read_tables, settings_beside
from dialgym.datasets.workers import collect_in_workers
from dialgym.errors import check_arguments, whole_number
from dialgym.io.locks import locked
from dialgym.registry import Environment, entry_of
from dialgym.rollouts import Report
from dialgym.rollouts.player import Source
from dialgym.rollouts.policies import with_own_settings
from dialgym.views.making import check_portable


class CollectOptions(TypedDict, total=False):
    """Further arguments of `collect`.

    Attributes:
        env_kwargs: settings as for ``gym.make(id, ...)``, plain values.
        policy_kwargs: settings of a registered policy (``{"smart": 0.3}``), of a language model
            behind a service, or of how a saved model speaks (``{"beta": 4.0}``), see
            `agents.with_decoding`.
        options: of each reset; they fix hidden parts of the dialogue.
        deterministic: a policy with `predict` takes the likeliest action, else samples.
        num_envs: dialogues at once, for such a policy and one behind a service; 128 by default.
        shard_size: episodes in a file, 2,048 by default. A killed collector loses at most one
            file's worth.
        name: of the policy in the dataset.
        trust: read a checkpoint even if it is a pickle, such as Stable-Baselines3 writes; that can
            run code of whoever made it.
    """

    env_kwargs: Mapping[str, Any] | None
    policy_kwargs: Mapping[str, Any] | None
    options: Mapping[str, Any] | None
    deterministic: bool
    num_envs: int
    shard_size: int
    name: str | None
    trust: bool


def collect(
    id: Environment,
    policy: Source,
    episodes: int,
    seed: int = 0,
    workers: int = 0,
    path: str | PathLike[str] | None = None,
    *,
    report: Report = lambda ended: None,
    **more: Unpack[CollectOptions],
) -> Dataset:
    """Collect dialogues of a policy.

    Episode e is the dialogue that ``env.reset(seed=dialgym.experiments.episode_seed(seed, e))``
    begins. The same arguments give the same dialogues, whatever `workers` and `path` are.

    Args:
        id: an environment: an id, a task, its class, or ``module:Class``.
        policy: a registered name, an object with ``reply(task, state, rng) -> str``, an object
            with Stable-Baselines3's ``predict``, the path to a checkpoint, or ``openai:MODEL``; a
            mapping of a ``name`` and settings; or a generator of the task, by name or object,
            whose episodes may be several dialogues.
        episodes: number of episodes.
        seed: a whole number from 0.
        workers: 0 for this process; k to share the work among k processes.
        path: a folder to write Parquet files into; None to keep all in memory. A collection that
            was cut short there continues, one that is shorter is made longer, and damaged files
            are collected again. One process at a time may write there.
        report: called with the number of episodes that have just ended; first, where `path` is
            given or there are workers, with that of the episodes that were there already.
        more: see `CollectOptions`.

    Raises:
        ValueError: an argument is impossible, or `path` holds another collection.
        OSError: `path` cannot be written, or another process is writing there.
        FileNotFoundError: there is no such checkpoint.
        BudgetSpentError: the budget of a language model is spent; `path` has whole dialogues, and
            the same arguments go on.
        ImportError: pyarrow is not installed, or a checkpoint is given without `agents`.
    """
    given: dict[str, Any] = {**more}
    check_arguments(given, CollectOptions.__annotations__, "collect")
    entry = entry_of(id)
    env_kwargs = dict(given.pop("env_kwargs", None) or {})
    if workers:
        check_portable(entry, env_kwargs)
    policy, settings = with_own_settings(policy, given.pop("policy_kwargs", None))
    recipe = recipe_of(
        entry,
        policy,
        seed,
        given.pop("name", None),
        env_kwargs={**settings_beside(entry), **env_kwargs},
        policy_kwargs=settings,
        options=dict(given.pop("options", None) or {}),
        **given,
    )
    whole_number("episodes", episodes, "collect")
    whole_number("workers", workers, "collect", 0)
    arrow()  # before anything is played
    if path is not None:
        return _into_folder(recipe, episodes, workers, Path(path), report)
    if workers:
        with TemporaryDirectory() as folder:
            return _into_folder(recipe, episodes, workers, Path(folder), report)
    collector = Collector(recipe)
    parts = [recipe.episodes(shard, episodes) for shard in range(recipe.shards(episodes))]
    try:
        return Dataset(arrow().concat_tables([collector.table(part, report) for part in parts]))
    except Interrupted as cut:
        raise cut.reason from None


def _into_folder(
    recipe: Recipe, episodes: int, workers: int, path: Path, report: Report
) -> Dataset:
    folder, collector = Folder(path), Collector(recipe)
    with locked(path):
        missing = folder.prepare(collector, episodes)
        folder.tidy()
        report(episodes - sum(len(part) - len(folder.begun(part, recipe)) for part in missing))
        if workers and missing:
            collect_in_workers(recipe, path, missing, workers, report)
        else:
            for part in missing:
                folder.complete(part, collector, report)
        folder.note_hub()
        return Dataset(read_tables(list(folder.files().values())))
