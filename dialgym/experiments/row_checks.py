"""Checks of a row's content: form, completeness, bounds, statistics.

`row_problems` plays nothing. Whether the episodes are those of the policy is for
`dialgym.experiments.protocol.replay_row`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.experiments.measures import CLOSE, measure_problems
from dialgym.experiments.panel import DRAWN_SECRETS, Panel, PanelEnvironment, panel_named
from dialgym.experiments.row import (
    ACTIONS,
    AS_NAMED,
    COLUMNS,
    CPU_SECONDS,
    FORM,
    MODEL_ACTIONS,
    SCRIPTED,
    check_name,
    episode_means,
    protocol_of,
    row_settings,
    score_references,
)
from dialgym.experiments.rules import Fingerprint
from dialgym.experiments.statistics import pass_hat_k
from dialgym.io.strict_reader import all_finite
from dialgym.registry import entry_of
from dialgym.rollouts.player import make_dialogue
from dialgym.rollouts.policies import named_policies
from dialgym.views.dialogue import Dialogue

KINDS = ("trained", "model", SCRIPTED)
ENTRIES: Mapping[str, type | tuple[type, ...]] = {
    "form": str, "panel": str, "version": int, "id": str, "name": str, "seed": int, "kind": str,
    "policy": str, "way": str, "settings": dict, "env_kwargs": dict, "hashes": dict,
    "episodes": dict, "statistics": dict, "trials": dict, "curve": list, "cost": dict,
    "hardware": dict, "versions": dict, "command": str, "seconds": (int, float),
}  # fmt: skip
"""Entries of a row, and their types."""
SHA256 = re.compile("[0-9a-f]{64}")
SOURCE = re.compile("[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
MOST = dict.fromkeys((*CPU_SECONDS, "wall_seconds", "seconds"), 1e9)
"""Seconds that a row may have cost: some thirty years."""
MOST_STEPS = 1e15
FARTHEST = {1: 0.7, 4: 0.9}
"""By k, how far pass^k of the few goals may be below s^k, of the success s of episodes, both in the
way that is ranked: in the kept rows it is .37 and .47 below at most."""
Bounds = Mapping[str, tuple[float, float]]
Values = Mapping[str, Any]


def row_problems(values: Any) -> Iterator[str]:
    """All that is wrong with the content of a file, as texts; nothing is played."""
    if not isinstance(values, Mapping) or values.get("form") != FORM:
        got = values.get("form") if isinstance(values, Mapping) else values
        yield f"expected an object whose form is {FORM!r}, got {str(got)[:60]!r}"
        return
    bad = [name for name, kind in ENTRIES.items() if not _is(values.get(name), kind)]
    bad += [] if _is(values.get("policy_kwargs", {}), dict) else ["policy_kwargs"]
    yield from (f"{name}: expected {_kind(name)}, got {values.get(name)!r:.40}" for name in bad)
    if not bad:
        yield from _content_problems(values)


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _kind(name: str) -> str:
    kind = ENTRIES.get(name, dict)
    return {str: "a text", int: "a whole number", dict: "an object", list: "a list"}.get(
        kind if isinstance(kind, type) else float, "a number"
    )


def _content_problems(values: Values) -> Iterator[str]:
    try:
        panel = panel_named(values["panel"])
        environment = panel.environment(values["id"])
    except ValueError as error:
        yield str(error)
        return
    if values["version"] != panel.version:
        yield f"version: expected {panel.version} of {panel.name!r}, got {values['version']}"
        return
    if values["id"] != environment.id:
        yield f"id: expected {environment.id!r}, in full, got {values['id']!r}"
    dialogue = _dialogue_of(environment)
    yield from _of_author(values, panel, dialogue)
    yield from _of_hashes(values["hashes"], panel, environment)
    for name, wanted in {"held_out": {}, **row_settings(environment)}.items():
        if values.get(name, {}) != wanted:
            yield f"{name}: expected the panel's, {wanted}, got {values.get(name)!r:.80}"
    yield from _of_model(values)
    yield from _of_actions(values)
    count = _episode_count(panel, dialogue, values)
    bounds = _bounds_of(dialogue, str(values["hashes"].get("source", AS_NAMED)))
    for actions, part in values["episodes"].items():
        wrong = [*_of_episodes(actions, part, values["statistics"].get(actions), count, bounds)]
        wrong += _of_trials(actions, values["trials"].get(actions), environment, panel)
        if not wrong and actions == values["way"]:  # which alone is ranked
            wrong = [*_of_success(actions, part, values["trials"].get(actions))]
        yield from wrong
    if environment.measures:
        yield from _of_measures(values, environment, count)
    yield from _of_training(values, bounds)


def _of_author(values: Values, panel: Panel, dialogue: Dialogue | None) -> Iterator[str]:
    """Problems of the name and policy of a row."""
    for check in (
        lambda: check_name(values["name"], "name"),
        lambda: panel.check_seed(values["seed"], "seed"),
        lambda: _check_reserved(values, panel, dialogue),
    ):
        try:
            check()
        except ValueError as error:
            yield str(error)


def check_author(panel: Panel, environment: PanelEnvironment, head: Values) -> None:
    """Check the name, seed and policy of a row that is to be made, of which there is the head.

    Raises:
        ValueError: the seed is none of the panel's, or the name is that of another policy.
    """
    panel.check_seed(head["seed"], "seed")
    _check_reserved(head, panel, _dialogue_of(environment))


def _check_reserved(values: Values, panel: Panel, dialogue: Dialogue | None) -> None:
    """Raise a ValueError where a name is that of a scripted policy, and the row is of another,
    or of that policy with settings."""
    name, kind, policy = values["name"], values["kind"], values["policy"]
    own = values.get("policy_kwargs")
    reserved = {"random", *panel.references}
    if dialogue is not None:
        reserved |= {*named_policies(dialogue.task, dialogue.learner, "act")}
    other = kind != SCRIPTED or policy != name or own
    if name in reserved - {*panel.algorithms} and other:
        raise ValueError(
            f"name: expected another name than {name!r}, which is that of a scripted policy; the "
            f"row is of {policy!r:.80} ({kind}{f', with {own}' if own else ''})"
        )


def _of_hashes(hashes: Values, panel: Panel, environment: PanelEnvironment) -> Iterator[str]:
    if hashes.get("protocol") != protocol_of(panel, environment):
        yield "hashes, protocol: expected the panel's, got another: made by another protocol"
    if "rules" in hashes:  # rows that are older than rules have none
        try:
            Fingerprint.of_values(hashes["rules"])
        except ValueError as error:
            yield f"hashes, {error}"
    source = hashes.get("source", AS_NAMED)
    if not isinstance(source, str) or not SOURCE.fullmatch(source):  # it stands in titles of tables
        yield (
            "hashes, source: expected up to 64 letters (a to z), digits, dots, dashes, underscores "
            f"and spaces, got {source!r:.80}"
        )
    references = hashes.get("references")
    wanted = score_references(environment, str(source))
    if references != wanted:
        yield (
            f"hashes, references: expected those of the registry, {wanted}, got {references!r:.80}"
            ": scores would be others"
        )


def _of_model(values: Values) -> Iterator[str]:
    name = "weights" if "weights" in values["hashes"] else "model"
    digits = values["hashes"].get(name)
    if values["kind"] != SCRIPTED and not SHA256.fullmatch(str(digits)):
        yield f"hashes, {name}: expected the SHA-256 of the model, got {digits!r:.80}"


def _of_actions(values: Values) -> Iterator[str]:
    for name, known in (("kind", KINDS), ("way", ACTIONS)):
        if values[name] not in known:
            yield str(unknown(name, values[name], known))
    wanted = [SCRIPTED] if values["kind"] == SCRIPTED else [*MODEL_ACTIONS]
    if sorted(values["episodes"]) != wanted:
        yield f"episodes: expected {' and '.join(wanted)}, got {[*values['episodes']]}"
    for name in ("statistics", "trials"):
        if beyond := [each for each in values[name] if each not in values["episodes"]]:
            yield f"{name}: expected those of the episodes alone, got {', '.join(beyond)}"
    if values["way"] not in values["episodes"]:
        yield f"episodes: expected those of its way, {values['way']}, got {[*values['episodes']]}"


def _episode_count(panel: Panel, dialogue: Dialogue | None, values: Values) -> int:
    """Episodes that a row should have.

    Where all secrets are played and the environment that has their list is not here, as many as the
    row has.
    """
    evaluation = panel.evaluation
    if dialogue is not None:
        return len(evaluation.options(dialogue.task))
    part = values["episodes"].get(values["way"])
    columns = [*part.values()] if isinstance(part, Mapping) else []
    if evaluation.secrets == DRAWN_SECRETS or not columns or not isinstance(columns[0], list):
        return evaluation.episodes
    return max(evaluation.episodes, len(columns[0]))


def _of_episodes(
    actions: str, part: Any, statistics: Any, count: int, bounds: Bounds
) -> Iterator[str]:
    for key in COLUMNS:
        column = part.get(key) if isinstance(part, Mapping) else None
        if not isinstance(column, list) or len(column) != count or not all_finite(column):
            got = f"{len(column)}" if isinstance(column, Sequence) else repr(column)
            yield f"episodes, {actions}, {key}: expected {count} finite numbers, got {got}"
            return
    if not set(part["solved"]) <= {0, 1}:
        yield f"episodes, {actions}, solved: expected 0 or 1"
    if any(length % 1 for length in part["lengths"]):
        yield f"episodes, {actions}, lengths: expected whole numbers"
    yield from _out_of_bounds(actions, part, bounds)
    right = episode_means(part)
    stated: list[Any] = (
        [statistics.get(name) for name in right] if isinstance(statistics, Mapping) else []
    )
    known = bool(stated) and all_finite(stated)
    if not known or not np.allclose(stated, [*right.values()], rtol=0, atol=CLOSE):
        yield f"statistics, {actions}: expected those of the episodes, {right}, got {statistics}"


def _dialogue_of(environment: PanelEnvironment) -> Dialogue | None:
    """A dialogue of an environment; None where its data or packages are not here."""
    try:
        return make_dialogue(entry_of(environment.id), environment.scoring_settings)
    except (ImportError, OSError, ValueError):
        return None


def _bounds_of(dialogue: Dialogue | None, source: str) -> dict[str, tuple[float, float]]:
    """The lowest and highest return and length of an episode; none where they are not known here.

    Args:
        dialogue: of the environment.
        source: of the data of a row; the returns of other data may have other bounds.
    """
    if dialogue is None or (dialogue.task.stand_in or AS_NAMED) != source:
        return {}
    facts = dialogue.task.facts
    return {"returns": facts.returns[dialogue.learner], "lengths": (1, facts.turn_limit)}


def _out_of_bounds(actions: str, part: Values, bounds: Bounds) -> Iterator[str]:
    for key, (low, high) in bounds.items():
        beyond = [value for value in part[key] if not low - CLOSE <= value <= high + CLOSE]
        if beyond:
            yield (
                f"episodes, {actions}, {key}: expected {low:g} to {high:g}, the environment's "
                f"bounds, got {beyond[0]!r:.40}"
            )


def _of_trials(
    actions: str, trials: Any, environment: PanelEnvironment, panel: Panel
) -> Iterator[str]:
    goals, count = len(environment.goals), panel.evaluation.trials
    rows = trials if isinstance(trials, list) else []
    if not goals and trials is None:
        return
    whole = len(rows) == goals and all(isinstance(r, list) and len(r) == count for r in rows)
    if not whole or not all(isinstance(one, bool) for row in rows for one in row):
        yield (
            f"trials, {actions}: expected {count} truth values for each of {goals} goals, "
            f"got {trials!r:.80}"
        )


def _of_success(actions: str, part: Values, trials: Any) -> Iterator[str]:
    """Yield problems of a policy that solves the episodes and fails with the goals of pass^k."""
    success = float(np.mean(part["solved"]))
    for k, most in FARTHEST.items():
        if not trials or k > len(trials[0]):
            continue
        passed = pass_hat_k(np.array(trials, bool), k)
        if success**k - passed > most:
            yield (
                f"trials, {actions}: pass^{k} is {100 * passed:.1f} %, and {100 * success:.1f} % "
                f"of the episodes are solved: expected {100 * (success**k - most):.1f} % at least"
            )


def _of_measures(values: Values, environment: PanelEnvironment, count: int) -> Iterator[str]:
    measures = values.get("measures")
    if not isinstance(measures, Mapping):
        names = ", ".join(environment.measures)
        yield f"measures: expected {names} for each way, got {measures!r:.40}"
        return
    for actions in values["episodes"]:
        yield from measure_problems(environment.measures, actions, measures.get(actions), count)


def _of_training(values: Values, bounds: Bounds) -> Iterator[str]:
    low, high = bounds.get("returns", (-np.inf, np.inf))
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
