"""Protocol of panels: how a policy is scored for a row, and how a row is replayed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.experiments.evaluate import evaluate
from dialgym.experiments.measures import CLOSE, differing_measures, measure_replies
from dialgym.experiments.panel import Panel, PanelEnvironment, panel_named
from dialgym.experiments.result import DRAWN, GREEDY, Episodes
from dialgym.experiments.row import (
    AS_NAMED,
    COLUMNS,
    MODEL_ACTIONS,
    SCRIPTED,
    ExperimentRow,
    episode_columns,
    episode_means,
    is_model_of,
    model_hash,
    policy_of_row,
    protocol_of,
    row_file,
    row_head,
    score_references,
)
from dialgym.experiments.row_checks import check_author
from dialgym.experiments.rules import rules_of
from dialgym.io.checksums import write_json_checked
from dialgym.io.files import check_writable, explained, read_json, write_atomically
from dialgym.io.model_settings import SPENT
from dialgym.io.saved_models import UNFINISHED, find_checkpoint
from dialgym.registry import entry_of
from dialgym.rollouts import Policy
from dialgym.rollouts.player import make_dialogue, policy_names
from dialgym.rollouts.policies import (
    learns_by_sampling,
    open_policy,
    policy_name,
    with_own_settings,
)
from dialgym.simulators.language_model import facts_of, is_language_model, tape_of
from dialgym.tasks import Task
from dialgym.versions import command_line, hardware, stopwatch, versions

AT_ONCE = 128
"""Dialogues at a time: draws depend on it, so it is a part of the protocol."""


@dataclass(frozen=True)
class _Scoring:
    """A policy that plays by a panel's protocol with one seed.

    Attributes:
        panel, environment: what is played.
        policy: opened.
        seed: of the training.
        policy_kwargs: settings of a registered policy.
    """

    panel: Panel
    environment: PanelEnvironment
    policy: Any
    seed: int
    policy_kwargs: Mapping[str, Any]

    def figures(self, actions: Sequence[str]) -> dict[str, Any]:
        """Episodes, statistics, trials and measures, as they stand in a row."""
        names = self.environment.measures
        parts = {each: self._play(each) for each in actions}
        episodes = {each: episode_columns(part) for each, part in parts.items()}
        goals = self.environment.goals
        figures = {
            "episodes": episodes,
            "statistics": {each: episode_means(part) for each, part in episodes.items()},
            "trials": {each: self._trials(each) for each in actions} if goals else {},
        }
        if names:
            figures["measures"] = {
                each: measure_replies(self._task, names, part.dialogues)
                for each, part in parts.items()
            }
        return figures

    @cached_property
    def _task(self) -> Task:
        return make_dialogue(self.environment.id, self.environment.scoring_settings).task

    def _play(self, actions: str) -> Episodes:
        options, record = self.panel.evaluation.options(self._task), bool(self.environment.measures)
        return self._evaluate(actions, len(options), AT_ONCE, record=record, options=options)

    def _trials(self, actions: str) -> list[list[bool]]:
        """(G, n) successes of n dialogues of each goal."""
        count = self.panel.evaluation.trials
        parts = (
            self._evaluate(actions, count, count, options=goal) for goal in self.environment.goals
        )
        return [[bool(s) for s in part.solved[0]] for part in parts]

    def _evaluate(self, actions: str, episodes: int, num_envs: int, **more: Any) -> Episodes:
        environment = self.environment
        result = evaluate(
            self.policy,
            environment.id,
            episodes,
            (self.panel.evaluation.seed + self.seed,),
            environment.scoring_settings,
            num_envs=num_envs,
            deterministic=actions != DRAWN,
            policy_kwargs=self.policy_kwargs,
            **more,
        )
        return result[environment.id]


def protocol_figures(
    panel: Panel,
    environment: PanelEnvironment,
    policy: Policy,
    seed: int,
    is_model: bool,
    trust: bool = False,
) -> dict[str, Any]:
    """Score a policy by the panel's protocol: its figures, as they stand in a row.

    Args:
        panel, environment: what is played.
        policy: as of `dialgym.evaluate`.
        seed: of the training.
        is_model: it plays drawn and greedily; else it plays once.
        trust: as of `dialgym.evaluate`.
    """
    actions = MODEL_ACTIONS if is_model else (SCRIPTED,)
    return _scoring_of(panel, environment, policy, seed, trust).figures(actions)


def _scoring_of(
    panel: Panel, environment: PanelEnvironment, policy: Policy, seed: int, trust: bool
) -> _Scoring:
    """The policy, opened; one that stays a name with its settings."""
    policy, settings = with_own_settings(policy, None)
    names = policy_names([entry_of(environment.id)], environment.scoring_settings)
    opened = open_policy(policy, names, trust=trust, settings=settings)
    own = settings if isinstance(opened, str) else {}
    return _Scoring(panel, environment, opened, seed, own)


def score_policy(
    panel: Panel,
    environment: PanelEnvironment,
    policy: Policy,
    name: str,
    seed: int,
    out: Path,
    actions: str = DRAWN,
    trust: bool = False,
) -> Path:
    """Score your own policy by the protocol, and write its row, with its model beside it.

    Args:
        panel, environment: what is played.
        policy: as of `dialgym.evaluate`: a name, a checkpoint, an object, or a mapping of the
            ``name`` and settings, which the row keeps (`policy_kwargs`). The row of a language
            model behind a service has its host, its sampling, and what was asked.
        name: of the row.
        seed: of its training, or which of several such policies it is.
        out: the folder of all panels.
        actions: how a model was trained: drawn or greedy.
        trust: as of `dialgym.evaluate`.

    Returns:
        The row's file.

    Raises:
        ValueError, FileNotFoundError: as of `dialgym.evaluate`; or the file is the row of another
            policy, or the model has a row of the name with another seed.
        OSError: the row cannot be written; nothing has been played then.
    """
    cost_so_far = stopwatch()
    file = out / row_file(panel.name, name, environment.id, seed)
    policy, given = with_own_settings(policy, None)
    if is_language_model(policy):
        policy, given = open_policy(policy, settings=given), {}
    model = find_checkpoint(policy) if isinstance(policy, (str, Path)) else None
    label, served, before = policy_path(policy), facts_of(policy), SPENT.counts()
    kind = SCRIPTED if model is None else "model"
    head = row_head(panel, environment, name, seed, kind, label) | {"settings": served}
    head |= {"policy_kwargs": given} if given else {}
    check_author(panel, environment, head)
    _refuse_another(file, model, head)
    if model is not None:
        _refuse_unfinished(model)
        _refuse_again(file, model)
    check_writable(file.parent if model is None else file.with_suffix(""))
    figures = protocol_figures(
        panel, environment, policy_of_row(policy, head), seed, model is not None, trust
    )
    hashes = environment_hashes(panel, environment)
    if model is not None:
        _keep_model(model, file)
        hashes |= model_hash(model)
    cost = cost_so_far()
    row = {
        **head,
        **figures,
        "way": SCRIPTED if model is None else actions,
        "hashes": hashes,
        "curve": [],
        "cost": cost,
        **({"usage": SPENT.since(before), **tape_of(policy)} if served else {}),
        "hardware": hardware(),
        "command": command_line(),
        "versions": versions(),
        "seconds": cost["wall_seconds"],
    }
    write_json_checked(file, row, indent=1)
    return file


def _keep_model(model: Path, file: Path) -> None:
    """Copy a model to where the row in `file` has it."""
    copy = file.with_suffix("") / "model.zip"
    if not (copy.exists() and copy.samefile(model)):
        write_atomically(copy, lambda temporary: shutil.copyfile(model, temporary))


def _refuse_another(file: Path, model: Path | None, head: Mapping[str, Any]) -> None:
    """Raise ValueError where a file is the row of another policy, or of one with other settings."""
    if not file.exists():
        return
    row, hashes = _row_in(file)
    names = ("policy_kwargs",) if model else ("policy_kwargs", "policy", "settings")
    if not is_model_of(hashes, model) or any(row.get(name) != head.get(name) for name in names):
        own = row.get("policy_kwargs")
        raise ValueError(
            f"{str(file)!r} is the row of another policy ({row.get('policy')}, "
            f"{row.get('kind')}{f', with {own}' if own else ''}). Choose another name (--name), "
            "give all checkpoints of one name together, one for each seed, or move the file away."
        )


def _refuse_unfinished(model: Path) -> None:
    """Raise ValueError for the checkpoint of a run that has not ended."""
    if model.name == UNFINISHED:
        raise ValueError(
            f"{str(model.parent)!r} is a run that has not ended, and no row of a leaderboard. Go "
            "on with it (dialgym train --resume FOLDER) to its end."
        )


def _refuse_again(file: Path, model: Path) -> None:
    """Raise ValueError where a model has a row beside a file, with another seed."""
    stem = file.stem.rpartition("-seed")[0]
    for other in sorted(file.parent.glob(f"{stem}-seed*.json")):
        if other != file and is_model_of(_row_in(other)[1], model):
            raise ValueError(
                f"{str(other)!r} is the row of the same model, with another seed: one training "
                "counts once. Give the checkpoint of another training, or remove that row."
            )


def _row_in(file: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The content of a file, which may be no row, and its hashes."""
    with explained(file):
        values = read_json(file, "a row of the leaderboard")
    row = values if isinstance(values, Mapping) else {}
    hashes = row.get("hashes")
    return row, hashes if isinstance(hashes, Mapping) else {}


def training_actions(model: Any) -> str:
    """``drawn`` or ``greedy``: how a model was trained, by which its rows are ranked."""
    return DRAWN if learns_by_sampling(model) else GREEDY


def policy_path(policy: Policy) -> str:
    """``module:Class`` of a policy that is an object; a path, and ``openai:MODEL``, as it is."""
    if isinstance(policy, (str, PathLike)):
        return str(policy)
    if facts_of(policy):
        return policy_name(policy)
    return f"{type(policy).__module__}:{type(policy).__qualname__}"


def environment_hashes(panel: Panel, environment: PanelEnvironment) -> dict[str, Any]:
    """Hash what figures of an environment depend on beside the policy.

    `rules` is the fingerprint of `rules_of`: whatever moves a simulator, a set of goals or a data
    set moves it. `protocol` is a hash of what the panel says of the environment.
    """
    entry = entry_of(environment.id)
    source = make_dialogue(entry, environment.scoring_settings).task.stand_in or AS_NAMED
    return {
        "rules": rules_of(entry, environment.scoring_settings)._asdict(),
        "source": source,
        "protocol": protocol_of(panel, environment),
        "references": score_references(environment, source),
    }


# Replay


def replay_row(row: ExperimentRow, policy: Policy, trust: bool = False) -> list[str]:
    """Play a row's policy again, and say where its episodes are others.

    Args:
        row: the row.
        policy: the model or policy that it is of.
        trust: as of `dialgym.evaluate`.
    """
    panel, values = panel_named(row.values["panel"]), row.values
    environment = panel.environment(row.id)
    wrong = [*_other_hashes(values["hashes"], environment_hashes(panel, environment))]
    scoring = _scoring_of(panel, environment, policy, row.seed, trust)
    tape = tape_of(scoring.policy).get("tape")
    if tape != values.get("tape"):
        wrong.append(f"tape: expected {values.get('tape')}, as the row says; got {tape}")
    if not row.is_scripted:
        actions = training_actions(scoring.policy)
        if actions != row.actions:
            wrong.append(
                f"way: the model was trained to be played {actions}, the row says {row.actions}"
            )
    again = scoring.figures([*values["episodes"]])
    for actions, part in values["episodes"].items():
        differences = [*_other_episodes(part, again["episodes"][actions])]
        trials = again["trials"].get(actions, [])
        differences += _other_trials(values["trials"].get(actions, []), trials)
        if environment.measures:
            before, measured = values["measures"][actions], again["measures"][actions]
            differences += [f"measures, {text}" for text in differing_measures(before, measured)]
        wrong += [f"{actions}, {text}" for text in differences]
    return wrong


def _other_hashes(expected: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of the environment here from the row's."""
    for key in ("rules", "source"):
        if key in expected and here[key] != expected[key]:
            yield (
                f"hashes, {key}: the environment here is another ({here[key]!r}, the row's is "
                f"{expected[key]!r}): other data, or another version"
            )


def _other_episodes(part: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns in which replayed episodes differ from the file's."""
    for key in COLUMNS:
        pairs = enumerate(zip(part[key], again[key], strict=True))
        other = [e for e, (a, b) in pairs if abs(a - b) > CLOSE]
        if other:
            first = other[0]
            yield (
                f"{key}: {len(other)} of {len(part[key])} episodes are others, the first {first}: "
                f"{part[key][first]} in the file, {again[key][first]} played"
            )


def _other_trials(expected: Sequence[Any], again: Sequence[Sequence[bool]]) -> Iterator[str]:
    """Yield the goals whose replayed successes differ from the file's."""
    for goal, (before, now) in enumerate(zip(expected, again, strict=True)):
        if before != now:
            yield f"trials, goal {goal}: {sum(before)} successes in the file, {sum(now)} played"
