"""Candidates of the zoo: the best training of each chosen environment that has its model.

Trainings are those of rows (``PANEL/NAME/ID-seedN.json``, the model in the folder beside it) and,
where a panel has tests on the way, of the results of its jobs.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from agents.experiments.job import RESULT, read_result
from agents.experiments.pydial_panel import Task
from dialgym.experiments.panel import Panel, PanelEnvironment, panel_named
from dialgym.experiments.protocol import AT_ONCE
from dialgym.experiments.pydial_ranking import NAMED
from dialgym.experiments.result import DRAWN, GREEDY, Episodes, Result
from dialgym.experiments.row import AS_NAMED, RETURN, ExperimentRow, model_hash
from dialgym.experiments.row_files import read_rows
from dialgym.io.saved_models import CHECKPOINT
from dialgym.rollouts.player import make_dialogue

BUILT_IN = "built-in"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A training with its model.

    Attributes:
        panel, environment: what was learned.
        row: name in the panel's table.
        seed: of the training.
        actions: drawn or greedy: how it is played, as it learned.
        mean: of the panel's metric, by which the best is chosen.
        source: of the data, as rows have it.
        model: its file.
        play: gives the episodes that the mean is of; see `episodes`.
        command, versions, cpu_seconds: that made it; None for unknown seconds.
        among: trainings of the environment with their models, of which it is the best.
    """

    panel: Panel
    environment: PanelEnvironment
    row: str
    seed: int
    actions: str
    mean: float
    source: str
    model: Path
    play: Callable[[], Episodes]
    command: str
    versions: Mapping[str, str]
    cpu_seconds: float | None
    among: int = 1

    @property
    def name(self) -> str:
        """``wordle-20-ppo``: the environment and the row."""
        return f"{self.environment.short.lower().removesuffix('-v0')}-{self.row}"

    @cached_property
    def episodes(self) -> Episodes:
        """The episodes that the mean is of.

        Raises:
            ValueError: the model is another one than that of the row or test.
        """
        return self.play()

    @property
    def digits(self) -> str:
        """Hash of its weights."""
        return model_hash(self.model).get("weights", "")

    def result(self) -> Result:
        """Its episodes, for a card."""
        env_id, seed = self.environment.id, self.panel.evaluation.seed + self.seed
        stand_ins = {} if self.source == AS_NAMED else {env_id: self.source}
        settings = self.environment.scoring_settings
        episodes = {env_id: self.episodes}
        return Result(self.row, (seed,), episodes, settings, stand_ins, actions=self.actions)


def candidates(
    chosen: Mapping[str, Sequence[str]], folders: Sequence[Path]
) -> tuple[list[Candidate], list[str]]:
    """Find the best training of each environment, and say which environments have none.

    One whose best is no better than a random policy has none, nor has one that was learned with
    data which do not come with dialgym: who has none of them could not play it.

    Args:
        chosen: environments by panel.
        folders: of rows of all panels, and of jobs with tests.

    Raises:
        ValueError: a panel or environment is unknown, or a file is no row.
    """
    found, left_out = [], []
    for name, ids in chosen.items():
        panel = panel_named(name)
        trained = _trained_on_the_way if panel.stages else _trained
        for environment in map(panel.environment, ids):
            those = [*trained(panel, environment, folders)]
            here = [one for one in those if one.source == _source_of(environment)]
            if not here:
                why = f"of other data ({those[0].source})" if those else "with its model"
                left_out.append(f"{name}, {environment.short}: no training {why}")
                continue
            best = min(here, key=lambda one: (-one.mean, one.row, one.seed))
            best = replace(best, among=len(here))
            if _has_learned(best):
                found.append(best)
            else:
                left_out.append(f"{name}, {environment.short}: {best.row} has learned nothing")
    return found, left_out


def _source_of(environment: PanelEnvironment) -> str:
    """The source of the data that an environment has here."""
    task = make_dialogue(environment.id, environment.scoring_settings).task
    return task.stand_in or AS_NAMED


def _has_learned(one: Candidate) -> bool:
    interval = one.episodes.score_interval
    return interval is None or interval[0] > 0


# By rows


def _trained(
    panel: Panel, environment: PanelEnvironment, folders: Sequence[Path]
) -> Iterator[Candidate]:
    """Trainings of an environment by their rows."""
    for row in read_rows(folders, panel):
        if row.id == environment.id and not row.is_scripted and row.model_file.is_file():
            yield Candidate(
                panel, environment, row.name, row.seed, row.actions, _mean(row, panel.metric),
                row.source, row.model_file, partial(_episodes_of, row),
                row.values["command"], row.values["versions"], row.cpu_seconds,
            )  # fmt: skip


def _mean(row: ExperimentRow, metric: str) -> float:
    """The mean of a row's metric; of its returns where it has no score."""
    values = row.column(metric)
    values = row.column(RETURN) if values is None else values
    assert values is not None
    return float(values.mean())


def _episodes_of(row: ExperimentRow) -> Episodes:
    """The episodes of a row, whose model must be the one beside it."""
    row.find_policy()
    part = row.values["episodes"][row.actions]
    returns, scores = np.array(part["returns"])[None], row.column("score")
    solved, lengths = np.array(part["solved"], bool)[None], np.array(part["lengths"])[None]
    return Episodes(returns, solved, lengths, None if scores is None else scores[None])


# By tests on the way


def _trained_on_the_way(
    panel: Panel, environment: PanelEnvironment, folders: Sequence[Path]
) -> Iterator[Candidate]:
    """Trainings of an environment of PyDial's benchmark by the results of their jobs."""
    task = Task.of(environment)
    for folder in folders:
        for file in sorted(folder.glob(f"**/{task.fidelity}/{task}/seed*/{RESULT}")):
            model, result = file.with_name(CHECKPOINT), read_result(file)
            if model.is_file() and _is_whole(result, panel):
                yield _of_test(panel, environment, model, result)


def _is_whole(result: Mapping[str, Any], panel: Panel) -> bool:
    """Return True for a training as long as the panel's, tested by as many dialogues."""
    whole = panel.stages[-1], panel.evaluation.episodes
    return (result["stages"][-1]["dialogues"], result["episodes"]) == whole


def _of_test(
    panel: Panel, environment: PanelEnvironment, model: Path, result: Mapping[str, Any]
) -> Candidate:
    """A training by its last test, played as it learned."""
    last = [stage for stage in result["stages"] if stage["dialogues"] == panel.stages[-1]]
    test = max(last, key=lambda stage: stage["drawn"])  # what draws is tested both ways
    actions = DRAWN if test["drawn"] else GREEDY
    words = ["dialgym", "benchmark", panel.name, "--algorithms", result["method"]]
    words += ["--domains", result["domain"], "--envs", str(result["env"])]
    words += ["--seeds", f"{result['seed']}-{result['seed']}"]
    return Candidate(
        panel, environment, result["method"], result["seed"], actions, 100 * test["success"],
        AS_NAMED if result["source"] == NAMED else BUILT_IN, model,
        partial(_played_again, panel, environment, model, result["seed"], test),
        shlex.join(words), result["versions"], test["cpu_seconds"],
    )  # fmt: skip


def _played_again(
    panel: Panel, environment: PanelEnvironment, model: Path, seed: int, test: Mapping[str, Any]
) -> Episodes:
    """The episodes of a test, of which its result has the means.

    Raises:
        ValueError: they have other means: it is another model, or the rules are others.
    """
    episodes = panel.evaluation.episodes
    played = dialgym.evaluate(
        str(model),
        environment.id,
        episodes,
        [panel.evaluation.seed + seed],
        environment.scoring_settings,
        num_envs=min(AT_ONCE, episodes),
        deterministic=not test["drawn"],
    )[environment.id]
    figures = {"success": played.success, "reward": played.mean_return}
    if any(abs(value - test[name]) > 1e-6 for name, value in figures.items()):
        raise ValueError(
            f"{str(model)!r} is not the model of its {RESULT}: expected "
            f"{ {name: test[name] for name in figures} }, got {figures} when it was played again."
        )
    return played
