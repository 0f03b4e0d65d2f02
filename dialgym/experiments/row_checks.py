"""The form of a row: what stands in its file, and what is wrong with one.

`problems` plays nothing. What it cannot find out, whether the episodes are those of the model, is
for `dialgym.experiments.protocol.replay`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.experiments.measures import CLOSE, misfits
from dialgym.experiments.panel import Panel, Place, panel_named, protocol_of
from dialgym.experiments.result import Episodes
from dialgym.experiments.rules import Fingerprint
from dialgym.experiments.statistics import pass_hat_k
from dialgym.io.strict_reader import all_finite
from dialgym.registry import entry_of
from dialgym.rollouts.player import make_dialogue
from dialgym.rollouts.policies import named_policies
from dialgym.views.dialogue import Dialogue

FORM = "dialgym leaderboard row 1"
MODEL_WAYS = ("drawn", "greedy")
SCRIPTED = "scripted"
WAYS = (*MODEL_WAYS, SCRIPTED)
"""How a policy is asked: what it says is drawn, or the likeliest; a scripted one knows no such."""
KINDS = ("trained", "model", SCRIPTED)
ENTRIES: Mapping[str, type | tuple[type, ...]] = {
    "form": str, "panel": str, "version": int, "id": str, "name": str, "seed": int, "kind": str,
    "policy": str, "way": str, "settings": dict, "env_kwargs": dict, "hashes": dict,
    "episodes": dict, "statistics": dict, "trials": dict, "curve": list, "cost": dict,
    "hardware": dict, "versions": dict, "command": str, "seconds": (int, float),
}  # fmt: skip
"""What a row has, and of which type."""
COLUMNS = {"returns": "return", "solved": "success", "lengths": "turns"}
"""What is kept of each episode, and what its mean is called."""
AS_NAMED = "as named"
"""The source of data for which nothing stood in."""
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a row may be called: its name is that of a folder, and stands in tables."""
SHA256 = re.compile("[0-9a-f]{64}")
MOST = dict.fromkeys(("cpu_seconds", "wall_seconds", "seconds"), 1e9)
"""Seconds that a row may have cost: some thirty years."""
MOST_STEPS = 1e15
FARTHEST = {1: 0.7, 4: 0.9}
"""By k, how far pass^k of the few goals may be below s^k, of the success s of episodes: in the kept
rows it is .37 and .71 below at most."""
Values = Mapping[str, Any]


# Writing


def columns(part: Episodes) -> dict[str, list[Any]]:
    """Return, success and length of each episode of one seed."""
    return {
        "returns": [round(float(r), 6) for r in part.returns[0]],
        "solved": [int(s) for s in part.solved[0]],
        "lengths": [int(n) for n in part.lengths[0]],
    }


def statistics(part: Values) -> dict[str, float]:
    """Means over the episodes."""
    return {name: round(float(np.mean(part[key])), 6) for key, name in COLUMNS.items()}


def settings_of(place: Place) -> dict[str, Any]:
    """The settings of an environment, as they stand in a row: of training, and of scoring."""
    held_out = {"held_out": dict(place.held_out)} if place.held_out else {}
    return {"env_kwargs": dict(place.settings), **held_out}


def references_of(place: Place, source: str) -> list[float] | None:
    """The returns of the random policy and the expert, between which scores lie; None for none.

    Args:
        place: whose settings, if it has any, leave no references.
        source: what stood in for the data that the settings name, or `AS_NAMED`.
    """
    if place.scored:
        return None
    scores = entry_of(place.id).row.references(None if source == AS_NAMED else source)
    random, expert = scores.get("random"), scores.get("expert")
    return None if random is None or expert is None or random == expert else [random, expert]


def check_name(name: str, where: str) -> str:
    """The name of a row, if it may be one.

    Raises:
        ValueError: it may not; the message begins with `where`.
    """
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{where}: expected up to 64 letters (a to z), digits, dots, dashes and underscores, "
            f"a letter or digit first, got {name!r:.80}"
        )
    return name


# Checking


def problems(values: Any) -> Iterator[str]:
    """All that is wrong with the content of a file, as texts; nothing is played."""
    if not isinstance(values, Mapping) or values.get("form") != FORM:
        got = values.get("form") if isinstance(values, Mapping) else values
        yield f"expected an object whose form is {FORM!r}, got {str(got)[:60]!r}"
        return
    bad = [name for name, kind in ENTRIES.items() if not _is(values.get(name), kind)]
    yield from (f"{name}: expected {_kind(name)}, got {values.get(name)!r:.40}" for name in bad)
    if not bad:
        yield from _misfits(values)


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _kind(name: str) -> str:
    kind = ENTRIES[name]
    return {str: "a text", int: "a whole number", dict: "an object", list: "a list"}.get(
        kind if isinstance(kind, type) else float, "a number"
    )


def _misfits(values: Values) -> Iterator[str]:
    try:
        panel = panel_named(values["panel"])
        place = panel.place(values["id"])
    except ValueError as error:
        yield str(error)
        return
    if values["version"] != panel.version:
        yield f"version: expected {panel.version} of {panel.name!r}, got {values['version']}"
        return
    if values["id"] != place.id:
        yield f"id: expected {place.id!r}, in full, got {values['id']!r}"
    dialogue = _dialogue_of(place)
    yield from _of_author(values, panel, dialogue)
    yield from _of_hashes(values["hashes"], panel, place)
    for name, wanted in {"held_out": {}, **settings_of(place)}.items():
        if values.get(name, {}) != wanted:
            yield f"{name}: expected the panel's, {wanted}, got {values.get(name)!r:.80}"
    yield from _of_model(values)
    yield from _of_ways(values)
    ends = _ends_of(dialogue, str(values["hashes"].get("source", AS_NAMED)))
    for way, part in values["episodes"].items():
        wrong = [*_of_episodes(way, part, values["statistics"].get(way), panel, ends)]
        wrong += _of_trials(way, values["trials"].get(way), place, panel)
        yield from wrong or _apart(way, part, values["trials"].get(way))
    if place.measures:
        yield from _of_measures(values, place, panel)
    yield from _of_training(values, ends)


def _of_author(values: Values, panel: Panel, dialogue: Dialogue | None) -> Iterator[str]:
    """Problems of the name and policy of a row."""
    kind, name = values["kind"], values["name"]
    for check in (
        lambda: check_name(name, "name"),
        lambda: panel.check_seed(values["seed"], "seed"),
        lambda: _check_reserved(name, kind, values["policy"], panel, dialogue),
    ):
        try:
            check()
        except ValueError as error:
            yield str(error)


def check_author(panel: Panel, place: Place, name: str, seed: int, kind: str, policy: str) -> None:
    """Look at who a row is to be of, before anything is played for it.

    Raises:
        ValueError: the seed is none of the panel's, or the name is that of another policy.
    """
    panel.check_seed(seed, "seed")
    _check_reserved(name, kind, policy, panel, _dialogue_of(place))


def _check_reserved(
    name: str, kind: str, policy: str, panel: Panel, dialogue: Dialogue | None
) -> None:
    """Raise a ValueError where a name is that of a scripted policy, and the row is of another."""
    reserved = {"random", *panel.references}
    if dialogue is not None:
        reserved |= {*named_policies(dialogue.task, dialogue.learner, "act")}
    if name in reserved - {*panel.algorithms} and (kind != SCRIPTED or policy != name):
        raise ValueError(
            f"name: expected another name than {name!r}, which is that of a scripted policy; the "
            f"row is of {policy!r:.80} ({kind})"
        )


def _of_hashes(hashes: Values, panel: Panel, place: Place) -> Iterator[str]:
    if hashes.get("protocol") != protocol_of(panel, place):
        yield "hashes, protocol: expected the panel's, got another: made by another protocol"
    if "rules" in hashes:  # rows that are older than rules have none
        try:
            Fingerprint.of_values(hashes["rules"])
        except ValueError as error:
            yield f"hashes, {error}"
    found = hashes.get("references")
    wanted = references_of(place, str(hashes.get("source", AS_NAMED)))
    if found != wanted:
        yield (
            f"hashes, references: expected those of the registry, {wanted}, got {found!r:.80}: "
            "scores would be others"
        )


def _of_model(values: Values) -> Iterator[str]:
    found = values["hashes"].get("model")
    if values["kind"] != SCRIPTED and not SHA256.fullmatch(str(found)):
        yield f"hashes, model: expected the SHA-256 of the model, got {found!r:.80}"


def _of_ways(values: Values) -> Iterator[str]:
    for name, known in (("kind", KINDS), ("way", WAYS)):
        if values[name] not in known:
            yield str(unknown(name, values[name], known))
    wanted = [SCRIPTED] if values["kind"] == SCRIPTED else [*MODEL_WAYS]
    if sorted(values["episodes"]) != wanted:
        yield f"episodes: expected {' and '.join(wanted)}, got {[*values['episodes']]}"
    for name in ("statistics", "trials"):
        if beyond := [way for way in values[name] if way not in values["episodes"]]:
            yield f"{name}: expected those of the episodes alone, got {', '.join(beyond)}"
    if values["way"] not in values["episodes"]:
        yield f"episodes: expected those of its way, {values['way']}, got {[*values['episodes']]}"


def _of_episodes(
    way: str, part: Any, found: Any, panel: Panel, ends: Mapping[str, tuple[float, float]]
) -> Iterator[str]:
    count = panel.evaluation.episodes
    for key in COLUMNS:
        column = part.get(key) if isinstance(part, Mapping) else None
        if not isinstance(column, list) or len(column) != count or not all_finite(column):
            got = f"{len(column)}" if isinstance(column, Sequence) else repr(column)
            yield f"episodes, {way}, {key}: expected {count} finite numbers, got {got}"
            return
    if not set(part["solved"]) <= {0, 1}:
        yield f"episodes, {way}, solved: expected 0 or 1"
    if any(length % 1 for length in part["lengths"]):
        yield f"episodes, {way}, lengths: expected whole numbers"
    yield from _beyond(way, part, ends)
    right = statistics(part)
    told: list[Any] = [found.get(name) for name in right] if isinstance(found, Mapping) else []
    known = bool(told) and all_finite(told)
    if not known or not np.allclose(told, [*right.values()], rtol=0, atol=CLOSE):
        yield f"statistics, {way}: expected those of the episodes, {right}, got {found}"


def _dialogue_of(place: Place) -> Dialogue | None:
    """A dialogue of an environment; None where its data or packages are not here."""
    try:
        return make_dialogue(entry_of(place.id), place.scored)
    except (ImportError, OSError, ValueError):
        return None


def _ends_of(dialogue: Dialogue | None, source: str) -> dict[str, tuple[float, float]]:
    """The lowest and highest return and length of an episode; none where they are not known here.

    Args:
        dialogue: of the environment.
        source: of the data of a row; the returns of other data may have other ends.
    """
    if dialogue is None or (dialogue.task.stand_in or AS_NAMED) != source:
        return {}
    facts = dialogue.task.facts
    return {"returns": facts.returns[dialogue.learner], "lengths": (1, facts.turn_limit)}


def _beyond(way: str, part: Values, ends: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    for key, (low, high) in ends.items():
        found = [value for value in part[key] if not low - CLOSE <= value <= high + CLOSE]
        if found:
            yield (
                f"episodes, {way}, {key}: expected {low:g} to {high:g}, the environment's "
                f"bounds, got {found[0]!r:.40}"
            )


def _of_trials(way: str, found: Any, place: Place, panel: Panel) -> Iterator[str]:
    goals, count = len(place.goals), panel.evaluation.trials
    rows = found if isinstance(found, list) else []
    if not goals and found is None:
        return
    whole = len(rows) == goals and all(isinstance(r, list) and len(r) == count for r in rows)
    if not whole or not all(isinstance(one, bool) for row in rows for one in row):
        yield (
            f"trials, {way}: expected {count} truth values for each of {goals} goals, "
            f"got {found!r:.80}"
        )


def _apart(way: str, part: Values, trials: Any) -> Iterator[str]:
    """Yield problems of a policy that solves the episodes and fails with the goals of pass^k."""
    success = float(np.mean(part["solved"]))
    for k, most in FARTHEST.items():
        if not trials or k > len(trials[0]):
            continue
        passed = pass_hat_k(np.array(trials, bool), k)
        if success**k - passed > most:
            yield (
                f"trials, {way}: pass^{k} is {100 * passed:.1f} %, and {100 * success:.1f} % of "
                f"the episodes are solved: expected {100 * (success**k - most):.1f} % at least"
            )


def _of_measures(values: Values, place: Place, panel: Panel) -> Iterator[str]:
    found = values.get("measures")
    if not isinstance(found, Mapping):
        yield f"measures: expected {', '.join(place.measures)} for each way, got {found!r:.40}"
        return
    for way in values["episodes"]:
        yield from misfits(place.measures, way, found.get(way), panel.evaluation.episodes)


def _of_training(values: Values, ends: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    low, high = ends.get("returns", (-np.inf, np.inf))
    before = [0.0, 0.0]
    for i, row in enumerate(values["curve"]):
        if not isinstance(row, list) or len(row) != 3 or not all_finite(row):
            yield f"curve[{i}]: expected timesteps, seconds and a return, got {row!r:.60}"
            return
        if row[0] < before[0] or not before[1] <= row[1] <= MOST["cpu_seconds"]:
            yield f"curve[{i}]: expected timesteps and seconds that rise, got {row!r:.60}"
            return
        if not low - CLOSE <= row[2] <= high + CLOSE:
            yield f"curve[{i}]: expected a return of {low:g} to {high:g}, got {row[2]!r:.40}"
            return
        before = row[:2]
    for name, amount in {**values["cost"], "seconds": values["seconds"]}.items():
        most = MOST.get(name, MOST_STEPS)
        if not all_finite([amount]) or not 0 <= amount <= most:
            yield f"cost, {name}: expected a number from 0 to {most:g}, got {amount!r:.40}"
