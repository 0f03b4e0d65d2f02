"""One cell of PyDial's benchmark: trained, tested after each of so many dialogues, written down."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import agents
import dialgym
from agents.experiments.calibration import calibration
from agents.experiments.cells import APART, Cell, Protocol, Task
from agents.experiments.job import Job, read_curve_rows
from agents.registry import ACTS, find
from agents.storage.models import read_model
from agents.training.callbacks import DIALOGUES_FILE, KEPT_MODEL
from agents.training.checkpoint import BEFORE
from agents.training.checkpoint import FILE as CHECKPOINT
from agents.training.hyperparameters import read_hyperparameters
from dialgym.experiments.pydial_ranking import NAMED
from dialgym.experiments.rules import rules_of
from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.rollouts.episodes import episode_seed
from dialgym.rollouts.policies import learns_by_sampling
from dialgym.tasks.slot_filling.domain.domain import pydial_folder

MODEL = "model.zip"
TEST_SEED = 7_000_000
"""Added to a seed: test dialogues are others than those of training."""
TESTED_AT_ONCE = 128
CHECKPOINT_EVERY = 4  # intervals of a thousand timesteps


@dataclass(frozen=True)
class PydialJob(Job):
    """A cell of PyDial's benchmark to perform.

    Models that have been tested are not kept, but for the last.

    Attributes:
        cell, protocol: what is to be done.
        folder, command: as of `Job`.
    """

    cell: Cell
    protocol: Protocol
    folder: Path
    command: str = ""
    unit: ClassVar[str] = "dialogues"

    def __str__(self) -> str:
        return str(self.cell)

    @property
    def kind(self) -> str:
        """The method."""
        return self.cell.method.name

    def description(self) -> dict[str, Any]:
        """See `description`."""
        return description(self.cell, self.protocol)

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, test what is not tested."""
        if self.cell.method.learns:
            _train(self)
        stages = [stage for dialogues in stages_of(self) for stage in _test(self, dialogues)]
        return {"stages": stages, "calibration": _calibration(self)}

    def clear(self) -> None:
        """Without checkpoints and tests."""
        for name in (CHECKPOINT, BEFORE, "checkpoints", "tensorboard", "tests"):
            remove(self.folder / name)

    def length(self) -> int:
        """Dialogues, those of tests included."""
        if not self.cell.method.learns:
            return self.protocol.episodes
        return self.protocol.dialogues + len(self.protocol.tests) * self.protocol.episodes

    def done(self) -> int:
        """Dialogues of training so far."""
        try:
            return sum(int(row["episodes"]) for row in read_curve_rows(self.folder))
        except (KeyError, ValueError):
            return 0

    def summary(self, result: Mapping[str, Any]) -> str:
        """Success and reward at the end."""
        last = result["stages"][-1]
        return (
            f"{100 * last['success']:.1f} %, reward {last['reward']:.1f} after "
            f"{last['dialogues']} dialogues"
        )


def description(cell: Cell, protocol: Protocol) -> dict[str, Any]:
    """What determines the figures of a cell, as plain values."""
    described: dict[str, Any] = {
        "method": cell.method.name,
        "algorithm": cell.method.algorithm,
        "domain": cell.task.domain,
        "env": cell.task.env,
        "seed": cell.seed,
        "source": source(cell.task),
        "episodes": protocol.episodes,
        "tests": [*protocol.tests] if cell.method.learns else [0],
        "settings": settings(cell),
    }
    return dict(json.loads(json.dumps(described, default=str)))


@cache
def source(task: Task) -> str:
    """Source of the domain: PyDial's files, the package, or a path."""
    domain = task.load()
    in_pydial = pydial_folder() == Path(domain.source).parent
    return NAMED if in_pydial else domain.source


def settings(cell: Cell) -> dict[str, Any]:
    """The hyperparameters of a cell.

    Raises:
        ValueError: one is unknown, or not a number where one is expected.
    """
    if not cell.method.learns:
        return {}
    row = find(cell.method.algorithm)
    return read_hyperparameters(row, cell.task.env_id, cell.method.overrides, None, ACTS)


def stages_of(job: PydialJob) -> tuple[int, ...]:
    """After how many dialogues it is tested."""
    return job.protocol.tests if job.cell.method.learns else (0,)


def _train(job: PydialJob) -> None:
    if (job.folder / MODEL).is_file():
        return
    cell, protocol = job.cell, job.protocol
    agents.train(
        cell.task.env_id,
        cell.method.algorithm,
        seed=APART * cell.seed,
        log_dir=job.folder,
        hyperparameters=dict(cell.method.overrides),
        device="cpu",
        progress_bar=False,
        env_kwargs={"text_info": False, **cell.task.settings},
        checkpoint_every=CHECKPOINT_EVERY,
        resume=True,
        dialogues=protocol.dialogues,
        keep_dialogues=protocol.tests,
    )


def _test(job: PydialJob, dialogues: int) -> list[dict[str, Any]]:
    """The figures after so many dialogues of training; kept, as a grid may be killed here too.

    A policy is tested as it learned: drawing acts, or taking the best; one that draws is at last
    tested both ways.
    """
    file = job.folder / "tests" / f"{dialogues}.json"
    if file.is_file():
        kept = read_json_checked(file, "the figures of a test, as JSON")
        return list(kept["stages"])
    cell = job.cell
    if not cell.method.learns:
        found = [_played(job, cell.method.algorithm, dialogues, drawn=False)]
    else:
        model = _load(cell, job.folder / "checkpoints" / KEPT_MODEL.format(dialogues))
        ways = [learns_by_sampling(model)]
        if ways[0] and dialogues == job.protocol.dialogues:
            ways = [False, True]
        found = [_played(job, model, dialogues, drawn) for drawn in ways]
    write_json_checked(file, {"stages": found})
    return found


def _played(job: PydialJob, policy: Any, dialogues: int, drawn: bool) -> dict[str, Any]:
    """The figures of a policy's test dialogues."""
    task, episodes = job.cell.task, job.protocol.episodes
    played = dialgym.evaluate(
        policy,
        task.env_id,
        episodes,
        [TEST_SEED + job.cell.seed],
        task.settings,
        num_envs=min(TESTED_AT_ONCE, episodes),
        deterministic=not drawn,
    )[task.env_id]
    return {
        "dialogues": dialogues,
        "drawn": int(drawn),
        "success": round(float(played.success), 6),
        "reward": round(float(played.mean_return), 6),
        "turns": round(float(played.mean_length), 6),
        "rules": str(rules_of(task.env_id, task.settings)),
        **_cost(job.folder, dialogues),
    }


def _load(cell: Cell, path: Path) -> Any:
    """A cell's model; its class may be one that nobody has registered."""
    return read_model(find(cell.method.algorithm).load(), path, device="cpu")


def _calibration(job: PydialJob) -> dict[str, Any] | None:
    """Of a model with a distribution of Q; see `calibration`."""
    if not job.cell.method.learns:
        return None
    model = _load(job.cell, job.folder / MODEL)
    if not hasattr(model, "q_distribution"):
        return None
    seed = episode_seed(TEST_SEED, job.cell.seed) % 2**31
    try:
        return calibration(model, job.cell.task, seed)
    except ValueError:  # a network of its class without uncertainty
        return None


def _cost(folder: Path, dialogues: int) -> Mapping[str, float]:
    """Timesteps and CPU seconds of training until so many dialogues had ended."""
    file = folder / DIALOGUES_FILE
    if not file.is_file():
        return {"timesteps": 0, "cpu_seconds": 0.0}
    with file.open(encoding="utf-8", newline="") as lines:
        rows = {int(row["dialogues"]): row for row in csv.DictReader(lines)}
    row = rows[dialogues]
    return {"timesteps": int(row["timesteps"]), "cpu_seconds": float(row["cpu_seconds"])}


def remove(path: Path) -> None:
    """Remove a file or a folder, where there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
