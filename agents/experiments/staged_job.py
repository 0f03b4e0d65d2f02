"""Job of a panel with stages: tested after each of so many dialogues, as in PyDial's benchmark."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import dialgym
from agents.experiments.calibration import calibration
from agents.experiments.job import RESULT, read_curve_rows
from agents.experiments.pydial_panel import Task
from agents.experiments.training_job import MODEL, TrainingJob, plain, remove
from agents.training.callbacks import DIALOGUES_FILE, KEPT_MODEL
from dialgym.experiments.panel import Panel, PanelEnvironment
from dialgym.experiments.protocol import AT_ONCE
from dialgym.experiments.pydial_ranking import NAMED
from dialgym.experiments.rules import rules_of
from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.rollouts.episodes import episode_seed
from dialgym.rollouts.policies import learns_by_sampling
from dialgym.tasks.slot_filling.domain.domain import pydial_folder


@dataclass(frozen=True)
class StagedJob(TrainingJob):
    """A learner, or a scripted policy, in a task of PyDial's benchmark with one seed.

    Models that have been tested are not kept, but for the last.
    """

    unit: ClassVar[str] = "dialogues"
    training_settings: ClassVar[Mapping[str, Any]] = {"text_info": False}

    def __hash__(self) -> int:
        return hash(self.folder)

    def __str__(self) -> str:
        return f"{self.name} {self.task} ({self.task.fidelity}) seed {self.seed}"

    @property
    def task(self) -> Task:
        """Domain and setting."""
        return _task(self.environment.id, tuple(self.environment.settings.items()))

    @property
    def kind(self) -> str:
        """The name."""
        return self.name

    @property
    def command(self) -> str:
        """The command that was given."""
        return self.asked

    @property
    def result(self) -> Path:
        """In the folder."""
        return self.folder / RESULT

    @property
    def stages(self) -> tuple[int, ...]:
        """Numbers of dialogues after which it is tested; 0 alone of a scripted policy."""
        return self.panel.stages if self.learner else (0,)

    def description(self) -> dict[str, Any]:
        """Plain values that determine the figures."""
        return plain(
            {
                "method": self.name,
                "algorithm": self.learner.algorithm if self.learner else self.name,
                "domain": self.task.domain,
                "env": self.task.env,
                "fidelity": self.task.fidelity,
                "seed": self.seed,
                "source": source_of(self.task),
                "episodes": self.panel.evaluation.episodes,
                "tests": [*self.stages],
                "settings": self.described(self.learner) if self.learner else {},
            }
        )

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, test what is not tested."""
        self.train()
        stages = [figures for dialogues in self.stages for figures in self._test(dialogues)]
        return {"stages": stages, "calibration": self._calibration()}

    def clear(self) -> None:
        """Remove checkpoints and tests."""
        super().clear()
        remove(self.folder / "tests")

    def length(self) -> int:
        """Dialogues, those of tests included."""
        episodes = self.panel.evaluation.episodes
        return self.stages[-1] + len(self.stages) * episodes

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

    # Tests

    def _test(self, dialogues: int) -> list[dict[str, Any]]:
        """Test the model of so many dialogues; figures are kept, as the job may be killed here too.

        A policy is tested as it learned: drawing acts, or taking the best; one that draws is at
        last tested both ways.
        """
        file = self.folder / "tests" / f"{dialogues}.json"
        if file.is_file():
            kept = read_json_checked(file, "the figures of a test, as JSON")
            return list(kept["stages"])
        policy: Any = self.name
        ways = [False]
        if self.learner:
            policy = self.load(self.folder / "checkpoints" / KEPT_MODEL.format(dialogues))
            draws = learns_by_sampling(policy)
            ways = [False, True] if draws and dialogues == self.stages[-1] else [draws]
        stages = [self._score(policy, dialogues, drawn) for drawn in ways]
        write_json_checked(file, {"stages": stages})
        return stages

    def _score(self, policy: Any, dialogues: int, drawn: bool) -> dict[str, Any]:
        """Figures of the test dialogues of a policy."""
        env_id, settings = self.environment.id, dict(self.environment.settings)
        evaluation = self.panel.evaluation
        result = dialgym.evaluate(
            policy,
            env_id,
            evaluation.episodes,
            [evaluation.seed + self.seed],
            settings,
            num_envs=min(AT_ONCE, evaluation.episodes),
            deterministic=not drawn,
        )[env_id]
        return {
            "dialogues": dialogues,
            "drawn": int(drawn),
            "success": round(float(result.success), 6),
            "reward": round(float(result.mean_return), 6),
            "turns": round(float(result.mean_length), 6),
            "rules": str(rules_of(env_id, settings)),
            **_cost(self.folder, dialogues),
        }

    def _calibration(self) -> dict[str, Any] | None:
        """Calibration of a model with a distribution of Q; None of others."""
        if not self.learner:
            return None
        model = self.load(self.folder / MODEL)
        if not hasattr(model, "q_distribution"):
            return None
        seed = episode_seed(self.panel.evaluation.seed, self.seed) % 2**31
        try:
            return calibration(model, self.environment, seed)
        except ValueError:  # a network of its class without uncertainty
            return None


def staged_folder(panel: Panel, place: PanelEnvironment, name: str, seed: int) -> Path:
    """Folder of a job, below that of the panel."""
    task = _task(place.id, tuple(place.settings.items()))
    return Path(name, task.fidelity, str(task), f"seed{seed}")


@cache
def source_of(task: Task) -> str:
    """Source of the domain: PyDial's files, the package, or a path."""
    domain = task.load()
    in_pydial = pydial_folder() == Path(domain.source).parent
    return NAMED if in_pydial else domain.source


@cache
def _task(env_id: str, settings: tuple[tuple[str, Any], ...]) -> Task:
    return Task.of(PanelEnvironment(env_id, dict(settings)))


def _cost(folder: Path, dialogues: int) -> Mapping[str, float]:
    """Timesteps and CPU seconds of training until so many dialogues had ended."""
    file = folder / DIALOGUES_FILE
    if not file.is_file():
        return {"timesteps": 0, "cpu_seconds": 0.0}
    with file.open(encoding="utf-8", newline="") as lines:
        rows = {int(row["dialogues"]): row for row in csv.DictReader(lines)}
    row = rows[dialogues]
    return {"timesteps": int(row["timesteps"]), "cpu_seconds": float(row["cpu_seconds"])}
