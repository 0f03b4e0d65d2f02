"""Jobs of a panel: every learner and reference policy, environment and seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import agents
from agents.argument_checks import check_device
from agents.experiments.staged_job import StagedJob, staged_folder
from agents.experiments.training_job import TrainingJob
from agents.registry import find
from dialgym.errors import unknown
from dialgym.experiments.panel import Panel, PanelEnvironment, PanelLearner
from dialgym.experiments.row import check_name, row_file
from dialgym.registry import entry_of


def jobs_of(
    panel: Panel,
    algorithms: Sequence[str],
    environments: Sequence[PanelEnvironment],
    seeds: Sequence[int],
    out: Path,
    command: str = "",
    device: str = "cpu",
) -> list[TrainingJob]:
    """Make every job of a panel, seed by seed: what is cut short covers all environments.

    Args:
        panel: what is run.
        algorithms: learners of the panel, others of the table of algorithms, reference policies.
        environments: environments of the panel; those that an algorithm cannot play are left out.
        seeds: of the trainings.
        out: the folder of all panels; of the panel itself, where it has stages.
        command: as of `TrainingJob.asked`.
        device: of the trainings, as PyTorch names it.

    Raises:
        ValueError: a name is unknown or may be of no row, nothing is left, or a setting is
            impossible.
    """
    check_device(device, "--device")
    if panel.imported_from:
        raise ValueError(
            f"panel {panel.name!r} is tested on the way: `dialgym benchmark {panel.name} --results "
            f"benchmarks/results/{panel.imported_from}` runs it; in Python, see "
            "`agents.experiments.pydial_panel.pydial_panel`"
        )
    jobs: list[TrainingJob] = []
    kind, folder_of = (StagedJob, staged_folder) if panel.stages else (TrainingJob, _row_folder)
    root = out.resolve()
    for seed in seeds:
        if not panel.stages:
            panel.check_seed(seed, "--seeds")
        for environment in environments:
            for name in dict.fromkeys(algorithms):
                learner = learner_named(panel, name)
                called = check_name(name.replace(":", "."), "--algorithms, name of the row")
                if learner is None or _plays(panel, learner, environment):
                    folder = root / folder_of(panel, environment, called, seed)
                    job = kind(panel, environment, called, learner, seed, folder, command, device)
                    jobs.append(job)
    if not jobs:
        raise ValueError(
            f"--algorithms: none of {', '.join(algorithms) or 'no names'} plays "
            f"{', '.join(environment.short for environment in environments) or 'no environment'}"
        )
    for job in jobs:
        job.description()
    return jobs


def _row_folder(panel: Panel, environment: PanelEnvironment, name: str, seed: int) -> Path:
    return row_file(panel.name, name, environment.id, seed).with_suffix("")


def learner_named(panel: Panel, name: str) -> PanelLearner | None:
    """Find a learner of the panel, or of the table of algorithms; None for a reference policy.

    Raises:
        ValueError: it is neither.
    """
    if name in panel.algorithms:
        return panel.algorithms[name]
    if name in panel.references:
        return None
    try:
        return PanelLearner(name, find(name).name if ":" not in name else name)
    except ValueError:
        known = (*panel.algorithms, *panel.references, *agents.registry.names())
        raise unknown("algorithm", name, known, "--algorithms") from None


def jobs_asked_for(panel: Panel, names: Iterable[str] | None = None) -> int:
    """Count the jobs that learners and references come to, with all seeds of the panel.

    Args:
        panel: of which.
        names: of learners and references; None for all of the panel's own.

    Raises:
        ValueError: there is nothing to run in the panel, or a name is unknown.
    """
    if panel.imported_from:
        raise ValueError(f"panel {panel.name!r} is tested on the way, and has no rows")
    names = [*panel.references, *panel.algorithms] if names is None else names
    playing = (
        learner is None or _plays(panel, learner, environment)
        for learner in map(partial(learner_named, panel), names)
        for environment in panel.environments
    )
    return panel.seeds * sum(playing)


def _plays(panel: Panel, learner: PanelLearner, environment: PanelEnvironment) -> bool:
    if learner.environments and environment.id not in [
        panel.environment(e).id for e in learner.environments
    ]:
        return False
    chain = [learner, *([panel.algorithms[learner.start]] if learner.start else [])]
    rows = [find(one.algorithm) for one in chain]
    kind = entry_of(environment.id).kind.actions
    return all(not row.plays or kind in row.kind for row in rows)
