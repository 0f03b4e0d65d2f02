"""Job of a panel: train a learner with one seed, score it by the protocol, write its row."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import agents
import dialgym
from agents.duration import LongTrainingWarning
from agents.experiments.job import (
    CURVE,
    Job,
    differences,
    finished,
    read_curve_rows,
    short_curve,
    timed,
)
from agents.registry import find
from agents.storage.models import read_model
from agents.training.checkpoint import BEFORE
from agents.training.checkpoint import FILE as CHECKPOINT
from agents.training.hyperparameters import read_hyperparameters
from dialgym.experiments.panel import Panel, PanelEnvironment, PanelLearner, StoredDialogues, digest
from dialgym.experiments.protocol import environment_hashes, protocol_figures, training_actions
from dialgym.experiments.row import model_hash, row_head
from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.io.files import read_json
from dialgym.io.locks import locked
from dialgym.registry import entry_of
from dialgym.versions import hardware

MODEL = "model.zip"
CLOCK = "cost.json"
TRAINING = "training.json"
"""File of what the model beside it was asked to learn from."""
APART = 1000
"""From a seed's first dialogue to that of the next: rows of an env take successive seeds."""
CHECKPOINT_EVERY = 4  # intervals of a thousand timesteps
LONG = 24 * 3600.0
"""Seconds to wait for another process that collects the same dialogues."""


@dataclass(frozen=True)
class TrainingJob(Job):
    """A learner, or a scripted policy, in an environment of a panel with one seed.

    Attributes:
        panel, environment: what is played.
        name: of the row.
        learner: what is trained; None for a scripted policy.
        seed: of the training and of the episodes.
        folder: as of `Job`.
        asked: the command that asked for it; by default one that makes this job alone.
        device: of PyTorch, for the training; scores are always made on the CPU.
    """

    panel: Panel
    environment: PanelEnvironment
    name: str
    learner: PanelLearner | None
    seed: int
    folder: Path
    asked: str = ""
    device: str = "cpu"
    training_settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the environment in training alone."""

    def __hash__(self) -> int:
        return hash(self.folder)

    def __str__(self) -> str:
        return f"{self.name} {self.environment.short} seed {self.seed}"

    @property
    def kind(self) -> str:
        """The row and the environment."""
        return f"{self.name} {self.environment.short}"

    @property
    def command(self) -> str:
        """The command that was given, or one that makes this job alone."""
        if self.asked:
            return self.asked
        chosen = ["--algorithms", self.name, "--envs", self.environment.short]
        seeds = f"{self.seed}-{self.seed}"
        words = ["benchmark", self.panel.name, *chosen, "--seeds", seeds]
        return shlex.join(["dialgym", *words])

    @property
    def result(self) -> Path:
        """Beside the folder, whose name it has."""
        return self.folder.with_name(f"{self.folder.name}.json")

    def description(self) -> dict[str, Any]:
        """Plain values of the row that are known before anything is played."""
        kind, policy, settings = "scripted", self.name, {}
        if self.learner:
            kind, policy = "trained", self.learner.algorithm
            settings = self._settings(self.learner)
        head = row_head(self.panel, self.environment, self.name, self.seed, kind, policy)
        return plain({**head, "settings": settings})

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, and score it."""
        data = self.train()
        with timed(self.folder / CLOCK):
            policy: Any = self.name
            way, more = "scripted", {}
            if self.learner:
                policy = self.load(self.folder / MODEL)
                way = training_actions(policy)
                more = {**model_hash(self.folder / MODEL), "data": data}
            scores = protocol_figures(
                self.panel, self.environment, policy, self.seed, bool(self.learner)
            )
            known = {**environment_hashes(self.panel, self.environment), **more}
        return {
            **scores,
            "way": way,
            "hashes": known,
            "curve": short_curve(self.folder),
            "cost": self._cost(),
            "hardware": hardware(),
        }

    def _cost(self) -> dict[str, Any]:
        """Seconds of training and scoring, CPU seconds of what it begins with, timesteps."""
        cost: dict[str, Any] = dict(read_json(self.folder / CLOCK, "a cost"))
        before = {"start_cpu_seconds": [folder / CLOCK for folder in self._folders()[:-1]]}
        if any(find(one.algorithm).reads for one in self._chain()):
            before["data_cpu_seconds"] = [_collecting(self._data_folder()) / CLOCK]
        for name, files in before.items():
            known = [read_json(f, "a cost")["cpu_seconds"] for f in files if f.is_file()]
            if known:
                cost[name] = sum(known)
        return {**cost, "trained": self.done()}

    def load(self, model: Path) -> Any:
        """Read a model of the learner, whose class may be one that is not registered."""
        assert self.learner is not None
        return read_model(find(self.learner.algorithm).load(), model, device="cpu")

    def clear(self) -> None:
        """Remove checkpoints."""
        for folder in self._folders():
            for name in (CHECKPOINT, BEFORE, "checkpoints", "tensorboard"):
                remove(folder / name)

    def length(self) -> int:
        """Timesteps of training, those of what it begins with included; episodes of a policy."""
        if self.learner is None:
            return self.panel.evaluation.episodes
        return sum(self._budget(one)[1] for one in self._chain())

    def done(self) -> int:
        """Timesteps so far."""
        return int(self._last("timesteps"))

    def seconds_so_far(self) -> float:
        """Seconds of training so far."""
        return self._last("seconds")

    def _last(self, column: str) -> float:
        rows = [read_curve_rows(folder) for folder in self._folders()]
        return sum(float(part[-1][column]) for part in rows if part)

    def summary(self, result: Mapping[str, Any]) -> str:
        """Return and success, the way it was trained first."""
        ways = sorted(result["statistics"].items(), key=lambda kv: kv[0] != result["way"])
        parts = (f"{w} {s['return']:.2f}, {100 * s['success']:.1f} %" for w, s in ways)
        return "; ".join(parts)

    # Training

    def _chain(self) -> list[PanelLearner]:
        """The learner, and before it those that it begins with; none of a scripted policy."""
        return self.panel.chain(self.learner) if self.learner else []

    def _folders(self) -> list[Path]:
        """Folders of the chain: the last is the job's own, each other one `start` in the next."""
        depths = range(max(len(self._chain()) - 1, 0), -1, -1)
        return [self.folder.joinpath(*["start"] * depth) for depth in depths]

    def _budget(self, learner: PanelLearner) -> tuple[str, int]:
        """The unit that the learner is measured in, and how many.

        Raises:
            ValueError: the panel gives none to such a learner.
        """
        row, view = find(learner.algorithm), entry_of(self.environment.id).view
        plays = {"token": ("tokens", "dialogues"), "act": ("acts", "dialogues")}.get(view, ())
        units = plays if row.plays else ("gradient_steps",)
        budget = self.environment.budget_of(learner)
        for unit in units:
            if unit in budget:
                return unit, budget[unit]
        raise ValueError(
            f"{self}: expected a budget of {' or '.join(units)} in the panel {self.panel.label}, "
            f"got {budget}"
        )

    def hyperparameters(self, learner: PanelLearner) -> dict[str, Any]:
        """The hyperparameters of a learner here.

        Raises:
            ValueError: one is unknown, or not a number where one is expected.
        """
        entry = entry_of(self.environment.id)
        row, kind = find(learner.algorithm), entry.kind.actions
        return read_hyperparameters(row, entry.id, learner.hyperparameters, None, kind)

    def described(self, learner: PanelLearner) -> dict[str, Any]:
        """The hyperparameters, and settings of the environment that are the learner's own."""
        own = {"env_kwargs": dict(learner.settings)} if learner.settings else {}
        return {**self.hyperparameters(learner), **own}

    def _settings(self, learner: PanelLearner) -> dict[str, Any]:
        unit, amount = self._budget(learner)
        settings = self.described(learner)
        settings |= {"n_timesteps": amount} if unit != "dialogues" else {"dialogues": amount}
        if find(learner.algorithm).reads:
            settings["data"] = vars(self._stored())
        if learner.start:
            settings["start"] = self._settings(self.panel.algorithms[learner.start])
        return settings

    def _learned_in(self, learner: PanelLearner) -> dict[str, Any]:
        """Settings of the environment in its training."""
        return {**self.training_settings, **self.environment.settings, **learner.settings}

    def train(self) -> dict[str, str]:
        """Train what is missing; return the hash of the stored dialogues, if there are any."""
        if self.learner is None:
            return {}
        digests = {}
        chain = list(zip(self._chain(), self._folders(), strict=True))
        for learner, folder in reversed(chain[:-1]):
            self._copy_start(learner, folder)
        for learner, folder in chain:
            reads = find(learner.algorithm).reads
            note_training(folder, self._training(learner))
            if (folder / MODEL).is_file() and not reads:
                continue
            dataset = self._dataset() if reads else None
            if dataset is not None:
                digests[self._stored().policy] = digest_of(dataset)
            if not (folder / MODEL).is_file():
                begin = folder / "start" / MODEL if learner.start else None
                self._train_one(learner, folder, dataset, begin)
        return digests

    def _training(self, learner: PanelLearner) -> dict[str, Any]:
        """Plain values that a model of the learner depends on."""
        return plain(
            {
                "algorithm": learner.algorithm,
                "environment": [self.environment.id, self._learned_in(learner)],
                "settings": self._settings(learner),
                "seed": self.seed,
            }
        )

    def _copy_start(self, learner: PanelLearner, folder: Path) -> None:
        """Copy what the row of a learner with this seed has trained, where it is there already.

        Training it again would make the same model. What that one began with comes along.
        """
        home = self.folder.parents[1] / learner.name / self.folder.name
        row = replace(self, name=learner.name, learner=learner, folder=home)
        if folder.is_dir() or not (home / MODEL).is_file() or finished(row) is None:
            return
        part = folder.with_name(f"{folder.name}-part")  # a copy that was cut short is made again
        remove(part)
        for model in [home / MODEL, *home.glob(f"**/start/{MODEL}")]:
            target = part / model.parent.relative_to(home)
            target.mkdir(parents=True, exist_ok=True)
            for name in (CLOCK, CURVE, MODEL, TRAINING):  # a short training has no curve
                if (model.parent / name).is_file():
                    shutil.copyfile(model.parent / name, target / name)
        part.rename(folder)

    def _train_one(
        self, learner: PanelLearner, folder: Path, dataset: Any, begin: Path | None
    ) -> None:
        unit, amount = self._budget(learner)
        dialogues = amount if unit == "dialogues" else None
        with timed(folder / CLOCK):
            train_quietly(
                learner.algorithm,
                self.environment.id,
                folder,
                APART * self.seed,
                total_timesteps=None if dialogues else amount,
                hyperparameters=dict(learner.hyperparameters),
                env_kwargs=self._learned_in(learner) or None,
                checkpoint_every=CHECKPOINT_EVERY,
                data=dataset,
                dialogues=dialogues,
                keep_dialogues=self.panel.stages,
                init_from=begin,
                device=self.device,
            )

    def _stored(self) -> StoredDialogues:
        if self.environment.data is None:
            raise ValueError(f"{self}: expected `data` in the panel {self.panel.label}, got none")
        return self.environment.data

    def _data_folder(self) -> Path:
        stored = self._stored()
        known = digest([self.environment.id, self.environment.settings, vars(stored)])
        name = f"{self.environment.short}-{stored.policy}-{known}"
        return self.folder.parents[1] / "data" / name

    def _dataset(self) -> Any:
        """The panel's stored dialogues; the first job that needs them collects them."""
        stored = self._stored()
        return collect_once(
            self._data_folder(),
            self.environment.id,
            stored.policy,
            stored.episodes,
            seed=stored.seed,
            env_kwargs=dict(self.environment.settings),
            policy_kwargs=dict(stored.policy_kwargs),
        )


def collect_once(home: Path, env_id: str, policy: str, episodes: int, **more: Any) -> Any:
    """Collect dialogues (as `dialgym.collect`) in a folder, where other jobs may want the same.

    The cost lies in a folder beside it; none where it was begun without a clock.
    """
    folder = _collecting(home)
    clock, cost = folder / "clock.json", folder / CLOCK
    with locked(folder, LONG):
        if cost.is_file() or (home.is_dir() and not clock.is_file()):
            return dialgym.collect(env_id, policy, episodes, path=home, **more)
        with timed(clock):
            dataset = dialgym.collect(env_id, policy, episodes, path=home, **more)
        clock.rename(cost)
        return dataset


def _collecting(home: Path) -> Path:
    """Folder of the lock and the cost of a collection."""
    return home.with_name(f"{home.name}-collecting")


def note_training(folder: Path, asked: Mapping[str, Any]) -> None:
    """Write down what is about to be learned in a folder, in plain values.

    Raises:
        ValueError: the model or checkpoint that is there comes from another training.
    """
    file = folder / TRAINING
    if not any((folder / name).is_file() for name in (MODEL, CHECKPOINT)):
        write_json_checked(file, asked, indent=1)
    elif file.is_file() and (changed := differences(read_json_checked(file, "a training"), asked)):
        raise ValueError(
            f"{str(folder)!r} has a training with other settings ({changed}). Delete the folder to "
            "train again, or give another --out."
        )


def train_quietly(algorithm: str, env_id: str, folder: Path, seed: int, **fields: Any) -> None:
    """Train without a bar, by default on the CPU; a training that was killed goes on."""
    fields = {"device": "cpu", "log_dir": folder, "seed": seed, **fields}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongTrainingWarning)  # grids are for long
        agents.train(env_id, algorithm, progress_bar=False, resume=True, **fields)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them."""
    return dict(json.loads(json.dumps(values, default=str)))


def remove(path: Path) -> None:
    """Remove a file or a folder, where there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def digest_of(dataset: Any) -> str:
    """16 hexadecimal digits of stored dialogues: the return and length of each."""
    content = dataset.returns.astype("<f4").tobytes() + dataset.lengths.astype("<i8").tobytes()
    return hashlib.sha256(content).hexdigest()[:16]
