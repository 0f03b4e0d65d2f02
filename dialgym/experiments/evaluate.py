"""`evaluate`: score any policy on any ids."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from dialgym.datasets.schema import settings_beside
from dialgym.errors import check_arguments, whole_number
from dialgym.experiments.measures import check_names, with_measures
from dialgym.experiments.result import DRAWN, GREEDY, Episodes, Result
from dialgym.experiments.understanding import not_understood
from dialgym.io.model_settings import NOT_UNDERSTOOD, SPENT
from dialgym.registry import Environment, RegistryEntry, entry_of, is_registered
from dialgym.rollouts import EpisodeBatch, Job, Player, Policy, Report
from dialgym.rollouts.player import open_where_trained, policy_names
from dialgym.rollouts.policies import (
    open_policy,
    plays_by_sampling,
    policy_name,
    settings_of,
    with_own_settings,
)
from dialgym.simulators import is_oracle
from dialgym.simulators.language_model import label_of, models_of
from dialgym.tasks import Task
from dialgym.views.arguments import Options
from dialgym.views.options import REWARD_OPTIONS
from dialgym.views.speakers import other_party

NEUTRAL = {"tokenizer", "action_masks", *REWARD_OPTIONS}
"""Arguments of an environment that leave its reference scores valid."""
POLICY = "policy"
"""Role of the policy among `Result.models`."""


class EvaluateOptions(TypedDict, total=False):
    """Further arguments of `evaluate`.

    Attributes:
        name: what tables call the policy.
        num_envs: dialogues at once, for a policy with `predict` and one behind a service; 128 by
            default.
        deterministic: such a policy takes the likeliest action, else draws one. None for as it
            learned: one that draws its actions while it learns (PPO, GRPO ...) draws them here,
            any other takes the likeliest. `Result.actions` says which.
        trust: read a checkpoint where it is a pickle, such as Stable-Baselines3 writes; that can
            run code of whoever made it.
        record: what is said is kept, in `Episodes.dialogues`.
        states: the dialogues are kept there as they ended.
        options: of every reset, or of that of each episode, the same for each seed; they fix
            hidden parts of the dialogues.
        policy_kwargs: settings of a registered policy, of a language model behind a service, or of
            how a saved model speaks, such as ``{"beta": 4.0}``, see `agents.with_decoding`; in
            `Result.policy_kwargs`. With one of
            drawing (temperature, top_k, top_p) actions are drawn, unless `deterministic` is given.
        measures: of replies, in tasks of replies: ROUGE, METEOR, BLEU, intent ..., or any reward;
            see `dialgym.rewards.metrics`. They are in `Episodes.measures` and `Episodes.figures`.
    """

    name: str | None
    num_envs: int
    deterministic: bool | None
    trust: bool
    record: bool
    states: bool
    options: Options | None
    policy_kwargs: Mapping[str, Any] | None
    measures: Sequence[str]


def evaluate(
    policy: Policy,
    ids: Environment | Sequence[Environment] | None = None,
    episodes: int = 100,
    seeds: Sequence[int] = (0, 1, 2),
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    report: Report = lambda ended: None,
    **more: Unpack[EvaluateOptions],
) -> Result:
    """Let a policy play `episodes` episodes for each seed in each environment, or where it learned.

    The same seeds give the same hidden states to every policy, whatever `num_envs` is.

    Args:
        policy: a registered name (``random``, ``optimal`` ...), an object with
            ``reply(task, state, rng) -> str`` or ``act(task, state, rng)``, an object with
            Stable-Baselines3's ``predict`` for observations of a token or act view, the path to a
            checkpoint, or ``openai:MODEL``, a language model behind a service; or a mapping of a
            ``name`` and settings. A scripted one is given what its party may know
            (`Task.observed`); one with ``oracle = True`` is given all, and tables mark it.
        ids: one id or several; a task, its class or ``module:Class`` stands for one. None for where
            the policy was trained, with the settings that it was trained with.
        episodes: for each seed.
        seeds: whole numbers from 0, distinct.
        env_kwargs: settings for all ids, as for ``gym.make(id, ...)``. Scores are then None,
            since the references hold for the registry's settings. Where something stands in for
            what a setting names, tables say so, and scores are by references of its own.
        report: called with the number of episodes that have just ended.
        more: see `EvaluateOptions`.

    Raises:
        ValueError: an argument is impossible, or the policy does not fit the environment.
        dialgym.tasks.HiddenStateError: a policy that is no oracle asks for what is hidden.
        FileNotFoundError: there is no such checkpoint.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
        BudgetSpentError: the budget of a language model is spent.
    """
    check_arguments(more, EvaluateOptions.__annotations__, "evaluate")
    policy, settings = with_own_settings(policy, more.get("policy_kwargs"))
    kwargs, name = dict(env_kwargs or {}), more.get("name") or policy_name(policy)
    measures = check_names(more.get("measures", ()), "evaluate")
    trust, deterministic = more.get("trust", False), more.get("deterministic")
    before = SPENT.counts()
    if ids is None:
        policy, ids, trained_with = open_where_trained(policy, trust, settings)
        kwargs = {**trained_with, **kwargs}
    several = isinstance(ids, Iterable) and not isinstance(ids, str)
    wanted: Any = ids if several else [ids]
    entries = {entry.id: entry for entry in map(entry_of, wanted)}
    kwargs = {**_settings_of_specs(entries.values()), **kwargs}
    _check(entries, episodes, seeds)
    names = policy_names(entries.values(), kwargs)
    opened = open_policy(policy, names, kwargs.get("learner", "system"), trust, settings)
    own = settings if isinstance(opened, str) else {}
    sampling = plays_by_sampling(opened)
    deterministic = not sampling if deterministic is None else deterministic
    jobs = [(seed, episode) for seed in seeds for episode in range(episodes)]
    scored = {}
    for entry in entries.values():
        player = Player(
            entry,
            opened,
            kwargs,
            policy_kwargs=own,
            num_envs=min(more.get("num_envs", 128), len(jobs)),
            deterministic=deterministic,
            record=more.get("record", False) or bool(measures),
            states=more.get("states", False),
        )
        scored[entry.id] = _score(player, opened, jobs, len(seeds), report, more)
    unknown = sum(part.not_understood for part in scored.values())
    return Result(
        policy=name,
        seeds=tuple(seeds),
        by_id={env_id: part.episodes for env_id, part in scored.items()},
        env_kwargs=kwargs,
        stand_ins={env_id: part.stand_in for env_id, part in scored.items() if part.stand_in},
        oracle=any(part.oracle for part in scored.values()),
        actions=(GREEDY if deterministic else DRAWN) if sampling else "",
        policy_kwargs=own or settings_of(opened) or label_of(opened),
        usage=SPENT.since(before) | ({NOT_UNDERSTOOD: unknown} if unknown else {}),
        models={role: each for part in scored.values() for role, each in part.models.items()},
    )


def _settings_of_specs(entries: Collection[RegistryEntry]) -> dict[str, Any]:
    """The settings of a spec that are not those of its id, as for ``gym.make(id, ...)``."""
    changed = [settings_beside(entry) for entry in entries if is_registered(entry.id)]
    if len(entries) == 1:
        return changed[0] if changed else {}
    if any(changed):
        raise ValueError(
            f"evaluate: expected one spec with settings of its own at a time, got {changed} among "
            f"{', '.join(entry.id for entry in entries)}. Give ids and env_kwargs, or one spec."
        )
    return {}


class _Scored(NamedTuple):
    """Episodes in one environment, with facts of it and of who played them; see `Result`."""

    episodes: Episodes
    stand_in: str | None
    oracle: bool
    models: Mapping[str, Mapping[str, str]]
    not_understood: int


def _score(
    player: Player,
    policy: Any,
    jobs: Sequence[Job],
    seeds: int,
    report: Report,
    more: EvaluateOptions,
) -> _Scored:
    """Play the episodes of all seeds in one environment; `policy` is the player's, as given."""
    speakers = {POLICY: policy, "simulator": player.dialogue.other}
    player.states |= any(map(label_of, speakers.values()))
    with closing(player):
        played = list(player.play(jobs, _of_seeds(more.get("options"), seeds), report))
    task = player.task
    episodes = to_episodes(played, seeds, _references(player.entry, player.env_kwargs, task))
    if measures := more.get("measures"):
        episodes = with_measures(episodes, task, measures, played)
    if not (more.get("record") or more.get("states")):
        episodes = replace(episodes, dialogues=())
    models = models_of(**speakers)  # with what is on their tapes by now
    unknown = _not_understood(player, models, played)
    return _Scored(episodes, task.stand_in, is_oracle(player.policy), models, unknown)


def _not_understood(player: Player, roles: Iterable[str], played: Iterable[EpisodeBatch]) -> int:
    """Count the texts of language models of these roles that the task makes nothing of."""
    task, learner = player.task, player.learner
    parties = [learner if role == POLICY else other_party(task, learner) for role in roles]
    states = [state for batch in played for state in batch.states or ()] if parties else []
    return sum(not_understood(task, state, party) for state in states for party in parties)


def _of_seeds(options: Options | None, seeds: int) -> Options | None:
    """Options of the episodes of one seed, repeated for each seed."""
    if options is None or isinstance(options, Mapping):
        return options
    return [*options] * seeds


def _references(
    entry: RegistryEntry, kwargs: Mapping[str, Any], task: Task
) -> tuple[float, float] | None:
    """Mean returns of the random policy and the expert, where they are known and differ."""
    scores = entry.row.references(task.stand_in)
    random, expert = scores.get("random"), scores.get("expert")
    if random is None or expert is None or random == expert or not NEUTRAL.issuperset(kwargs):
        return None
    return random, expert


def to_episodes(
    played: Iterable[EpisodeBatch], seeds: int, references: tuple[float, float] | None = None
) -> Episodes:
    """Dialogues, as many for each of some seeds, as `Episodes`.

    Args:
        played: seed after seed.
        seeds: how many.
        references: mean returns of the random policy and the expert.
    """
    parts = list(played)

    def rows(columns: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate(list(columns)).reshape(seeds, -1)

    returns, scores = rows(p.returns for p in parts), None
    if references is not None:
        random, expert = references
        scores = 100 * (returns - random) / (expert - random)
    solved, lengths = rows(p.success for p in parts), rows(p.lengths for p in parts)
    metrics = {name: rows(p.metrics[name] for p in parts) for name in parts[0].metrics}
    kept = parts[0].turns is not None or parts[0].states is not None
    said = tuple(parts) if kept else ()
    return Episodes(returns, solved, lengths, scores, metrics, said)


def _check(ids: Collection[str], episodes: int, seeds: Sequence[int]) -> None:
    if not ids:
        raise ValueError("evaluate: ids is empty; expected at least one id. See `dialgym list`.")
    whole_number("episodes", episodes, "evaluate")
    if not isinstance(seeds, Sequence) or isinstance(seeds, str):
        raise ValueError(
            f"evaluate: expected seeds to be a sequence of whole numbers, as (0, 1, 2); got "
            f"{seeds!r}."
        )
    whole = all(isinstance(seed, int) and seed >= 0 for seed in seeds)
    if not seeds or not whole or len(set(seeds)) != len(seeds):
        raise ValueError(
            f"evaluate: seeds must be distinct whole numbers from 0, at least one; got {seeds!r}."
        )
