"""The protocol of the leaderboard: how a policy is played for a row, and how a row is replayed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.experiments.evaluate import arranged
from dialgym.experiments.measures import CLOSE, differing, measured
from dialgym.experiments.panel import Panel, Place, panel_named, protocol_of
from dialgym.experiments.row import Submission, row_file
from dialgym.experiments.row_checks import (
    AS_NAMED,
    COLUMNS,
    FORM,
    MODEL_WAYS,
    SCRIPTED,
    check_author,
    columns,
    references_of,
    settings_of,
    statistics,
)
from dialgym.experiments.rules import rules_of
from dialgym.io.checksums import checksum, write_json_checked
from dialgym.io.files import check_writable, explained, read_json, write_atomically
from dialgym.registry import entry_of
from dialgym.rollouts import Policy
from dialgym.rollouts.player import Player, make_dialogue
from dialgym.rollouts.policies import find_checkpoint, learns_by_drawing, open_policy
from dialgym.versions import command_line, hardware, versions

AT_ONCE = 128
"""Dialogues at a time: draws depend on it, so it is a part of the protocol."""


def played(
    panel: Panel, place: Place, policy: Policy, seed: int, predicts: bool, trust: bool = False
) -> dict[str, Any]:
    """The figures of a policy by the panel's protocol, as they stand in a row.

    Args:
        panel, place: what is played.
        policy: as of `dialgym.evaluate`.
        seed: of the training.
        predicts: it is a model: it plays drawn and greedily; else it plays once.
        trust: as of `dialgym.evaluate`.
    """
    ways = MODEL_WAYS if predicts else (SCRIPTED,)
    held = {way: _held(panel, place, policy, seed, way, trust) for way in ways}
    measures = {way: found for way, (_, found) in held.items()}
    return {
        "episodes": {way: part for way, (part, _) in held.items()},
        "statistics": {way: statistics(part) for way, (part, _) in held.items()},
        "trials": {way: _trials(panel, place, policy, seed, way, trust) for way in ways}
        if place.goals
        else {},
        **({"measures": measures} if place.measures else {}),
    }


def score(
    panel: Panel,
    place: Place,
    policy: Policy,
    name: str,
    seed: int,
    out: Path,
    way: str = "drawn",
    trust: bool = False,
    told: str | None = None,
) -> Path:
    """Score a policy of one's own by the protocol, and write its row, with its model beside it.

    Args:
        panel, place: what is played.
        policy: as of `dialgym.evaluate`: a name, a checkpoint, an object.
        name: of the row.
        seed: of its training, or which of several such policies it is.
        out: the folder of all panels.
        way: how a model was trained: drawn or greedy.
        trust: as of `dialgym.evaluate`.
        told: what the row says of the policy, by which it is found again, such as
            ``module:object``; by default see `policy_path`.

    Returns:
        The row's file.

    Raises:
        ValueError, FileNotFoundError: as of `dialgym.evaluate`; or the file is the row of another
            policy, or the model has a row of the name with another seed.
        OSError: the row cannot be written; nothing has been played then.
    """
    started, cpu = time.monotonic(), time.process_time()
    file = out / row_file(panel.name, name, place.id, seed)
    model = find_checkpoint(policy) if isinstance(policy, (str, Path)) else None
    told = told or policy_path(policy)
    check_author(panel, place, name, seed, SCRIPTED if model is None else "model", told)
    digits = None if model is None else checksum(model)
    _refuse_another(file, digits, told)
    _refuse_again(file, digits)
    check_writable(file.parent if model is None else file.with_suffix(""))
    found = played(panel, place, policy, seed, model is not None, trust)
    known = hashes(panel, place)
    if model is not None:
        kept = file.with_suffix("") / "model.zip"
        if not (kept.exists() and kept.samefile(model)):
            write_atomically(kept, lambda temporary: shutil.copyfile(model, temporary))
        known["model"] = digits
    spent = {"wall_seconds": time.monotonic() - started, "cpu_seconds": time.process_time() - cpu}
    row = {
        "form": FORM,
        "panel": panel.name,
        "version": panel.version,
        "id": place.id,
        "name": name,
        "seed": seed,
        "kind": SCRIPTED if model is None else "model",
        "policy": told,
        "settings": {},
        **settings_of(place),
        **found,
        "way": SCRIPTED if model is None else way,
        "hashes": known,
        "curve": [],
        "cost": {key: round(value, 1) for key, value in spent.items()},
        "hardware": hardware(),
        "command": command_line(),
        "versions": versions(),
        "seconds": round(spent["wall_seconds"], 1),
    }
    write_json_checked(file, row, indent=1)
    return file


def _refuse_another(file: Path, model: str | None, policy: str) -> None:
    """Raises ValueError where a file is the row of another model, or of another scripted policy."""
    if not file.exists():
        return
    row, kept = _row_in(file)
    if kept != model or (model is None and row.get("policy") != policy):
        raise ValueError(
            f"{str(file)!r} is the row of another policy ({row.get('policy')}, "
            f"{row.get('kind')}). Choose another name (--name), give all checkpoints of one name "
            "together, one for each seed, or move the file away."
        )


def _refuse_again(file: Path, model: str | None) -> None:
    """Raises ValueError where a model has a row beside a file, with another seed."""
    stem = file.stem.rpartition("-seed")[0]
    for other in sorted(file.parent.glob(f"{stem}-seed*.json")) if model else ():
        if other != file and _row_in(other)[1] == model:
            raise ValueError(
                f"{str(other)!r} is the row of the same model, with another seed: one training "
                "counts once. Give the checkpoint of another training, or remove that row."
            )


def _row_in(file: Path) -> tuple[Mapping[str, Any], Any]:
    """The content of a file, which may be no row, and the checksum of its model."""
    with explained(file):
        values = read_json(file, "a row of the leaderboard")
    row = values if isinstance(values, Mapping) else {}
    found = row.get("hashes")
    return row, found.get("model") if isinstance(found, Mapping) else None


def way_of(model: Any) -> str:
    """``drawn`` or ``greedy``: how a model was trained, by which its rows are ranked."""
    return "drawn" if learns_by_drawing(model) else "greedy"


def policy_path(policy: Policy) -> str:
    """``module:Class`` of a policy that is an object; a path as it is."""
    if isinstance(policy, (str, PathLike)):
        return str(policy)
    return f"{type(policy).__module__}:{type(policy).__qualname__}"


def _held(
    panel: Panel, place: Place, policy: Policy, seed: int, way: str, trust: bool
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The episodes of a row played one way, and the measures of their replies."""
    count = panel.evaluation.episodes
    player = _player(place, policy, min(AT_ONCE, count), way, trust, bool(place.measures))
    try:
        parts = list(player.play([(panel.evaluation.seed + seed, e) for e in range(count)]))
        found = measured(player.task, place.measures, parts) if place.measures else {}
    finally:
        player.close()
    return columns(arranged(parts, 1)), found


def _player(
    place: Place, policy: Policy, num_envs: int, way: str, trust: bool, record: bool = False
) -> Player:
    return Player(
        place.id,
        policy,
        place.scored,
        num_envs=num_envs,
        deterministic=way != "drawn",
        record=record,
        trust=trust,
    )


def _trials(
    panel: Panel, place: Place, policy: Policy, seed: int, way: str, trust: bool
) -> list[list[bool]]:
    """(G, n) successes of n dialogues of each goal."""
    first, count = panel.evaluation.seed + seed, panel.evaluation.trials
    player = _player(place, policy, count, way, trust)
    rows = []
    try:
        for goal in place.goals:
            parts = list(player.play([(first, e) for e in range(count)], goal))
            rows.append([bool(s) for part in parts for s in part.success])
    finally:
        player.close()
    return rows


def hashes(panel: Panel, place: Place) -> dict[str, Any]:
    """What figures of an environment depend on beside the policy.

    `rules` is the fingerprint of `rules_of`: whatever moves a simulator, a set of goals or a data
    set moves it. `protocol` is a hash of what the panel says of the environment.
    """
    entry = entry_of(place.id)
    source = make_dialogue(entry, place.scored).task.stand_in or AS_NAMED
    return {
        "rules": rules_of(entry, place.scored)._asdict(),
        "source": source,
        "protocol": protocol_of(panel, place),
        "references": references_of(place, source),
    }


def replay(row: Submission, policy: Policy, trust: bool = False) -> list[str]:
    """Play a row's policy again, and say where its episodes are others.

    Args:
        row: the row.
        policy: the model or policy that it is of.
        trust: as of `dialgym.evaluate`.
    """
    panel = panel_named(row.values["panel"])
    place = panel.place(row.id)
    wrong = []
    expected, here = row.values["hashes"], hashes(panel, place)
    for key in ("rules", "source"):
        if key in expected and here[key] != expected[key]:
            wrong.append(
                f"hashes, {key}: the environment here is another ({here[key]!r}, the row's is "
                f"{expected[key]!r}): other data, or another version"
            )
    if row.values["kind"] != SCRIPTED:
        way = way_of(open_policy(policy, (), "system", trust))
        if way != row.way:
            wrong.append(f"way: the model was trained to be played {way}, the row says {row.way}")
    for way, part in row.values["episodes"].items():
        again, measures = _held(panel, place, policy, row.seed, way, trust)
        wrong += [f"{way}, {text}" for text in _other_episodes(part, again)]
        trials = _trials(panel, place, policy, row.seed, way, trust) if place.goals else []
        wrong += [f"{way}, {text}" for text in _other_trials(row.values["trials"], way, trials)]
        if place.measures:
            kept = row.values["measures"][way]
            wrong += [f"{way}, measures, {text}" for text in differing(kept, measures)]
    return wrong


def _other_episodes(part: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """Where episodes of a file are not those that were played again."""
    for key in COLUMNS:
        pairs = enumerate(zip(part[key], again[key], strict=True))
        other = [e for e, (a, b) in pairs if abs(a - b) > CLOSE]
        if other:
            first = other[0]
            yield (
                f"{key}: {len(other)} of {len(part[key])} episodes are others, the first {first}: "
                f"{part[key][first]} in the file, {again[key][first]} played"
            )


def _other_trials(trials: Mapping[str, Any], way: str, again: list[list[bool]]) -> Iterator[str]:
    """Where the successes of a goal's dialogues are others when they are played again."""
    for goal, (kept, found) in enumerate(zip(trials.get(way, []), again, strict=True)):
        if kept != found:
            yield f"trials, goal {goal}: {sum(kept)} successes in the file, {sum(found)} played"


def model_of(row: Submission, given: str | Path | None = None) -> Path | str:
    """The policy of a row, to be played: what a scripted row says, or the file of a model.

    Args:
        row: the row.
        given: where its model lies, if it has one; beside the file if None.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is another model.
    """
    if row.values["kind"] == SCRIPTED:
        return str(row.values["policy"])
    path = Path(given) if given else row.model_file
    path = path / "model.zip" if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(row.file)!r}: its model is not at {str(path)!r}. Say where it is (--model FILE)."
        )
    if checksum(path) != row.values["hashes"].get("model"):
        raise ValueError(f"{str(path)!r} is not the model of {str(row.file)!r}: another checksum")
    return path
