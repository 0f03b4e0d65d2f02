"""A cell of the leaderboard's panels: trained, played by the panel's protocol, written as a row."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import agents
import dialgym
from agents.experiments.cells import APART
from agents.experiments.cost import clocked, short_curve
from agents.experiments.job import Job, read_curve_rows
from agents.experiments.pydial_job import CHECKPOINT, CHECKPOINT_EVERY, MODEL, remove
from agents.registry import find
from agents.storage.models import read_model
from agents.training.checkpoint import BEFORE
from agents.training.hyperparameters import read_hyperparameters
from dialgym.errors import unknown
from dialgym.experiments.panel import Panel, PanelEnvironment, PanelLearner, StoredDialogues, digest
from dialgym.experiments.protocol import environment_hashes, protocol_figures, training_actions
from dialgym.experiments.row import FORM, check_name, row_file, row_settings
from dialgym.io.checksums import checksum
from dialgym.io.files import read_json
from dialgym.io.locks import locked
from dialgym.registry import entry_of
from dialgym.versions import hardware

CLOCK = "cost.json"
LONG = 24 * 3600.0
"""Seconds to wait for another process that collects the same dialogues."""


@dataclass(frozen=True)
class PanelJob(Job):
    """A learner, or a scripted policy, in an environment of a panel with one seed.

    Attributes:
        panel, place: what is played.
        name: of the row.
        learner: what is trained; None for a scripted policy.
        seed: of the training and of the episodes.
        folder: as of `Job`.
    """

    panel: Panel
    place: PanelEnvironment
    name: str
    learner: PanelLearner | None
    seed: int
    folder: Path
    unit: ClassVar[str] = "timesteps"

    def __hash__(self) -> int:
        return hash(self.folder)

    def __str__(self) -> str:
        return f"{self.name} {self.place.short} seed {self.seed}"

    @property
    def kind(self) -> str:
        """The row and the environment."""
        return f"{self.name} {self.place.short}"

    @property
    def command(self) -> str:
        """What makes this row anew, whichever command asked for it."""
        chosen = ["--algorithms", self.name, "--envs", self.place.short]
        seeds = f"{self.seed}-{self.seed}"
        command = ["benchmark", self.panel.name, *chosen, "--seeds", seeds]
        return shlex.join(["dialgym", *command])

    @property
    def result(self) -> Path:
        """Beside the folder, whose name it has."""
        return self.folder.with_name(f"{self.folder.name}.json")

    def description(self) -> dict[str, Any]:
        """What a row says of itself before anything is played."""
        described = {
            "form": FORM,
            "panel": self.panel.name,
            "version": self.panel.version,
            "id": self.place.id,
            "name": self.name,
            "seed": self.seed,
            "kind": "trained" if self.learner else "scripted",
            "policy": self.learner.algorithm if self.learner else self.name,
            "settings": self._settings(self.learner) if self.learner else {},
            **row_settings(self.place),
        }
        return dict(json.loads(json.dumps(described, default=str)))

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, play, and say what it took."""
        with clocked(self.folder / CLOCK):
            data = self._train()
            policy: Any = self.name
            way, more = "scripted", {}
            if self.learner:
                cls = find(self.learner.algorithm).load()
                policy = read_model(cls, self.folder / MODEL, device="cpu")
                way = training_actions(policy)
                more = {"model": checksum(self.folder / MODEL), "data": data}
            found = protocol_figures(self.panel, self.place, policy, self.seed, bool(self.learner))
            known = {**environment_hashes(self.panel, self.place), **more}
        return {
            **found,
            "way": way,
            "hashes": known,
            "curve": short_curve(self.folder),
            "cost": {**read_json(self.folder / CLOCK, "a cost"), "trained": self.done()},
            "hardware": hardware(),
        }

    def clear(self) -> None:
        """Without checkpoints."""
        for folder in (self.folder, self.folder / "start"):
            for name in (CHECKPOINT, BEFORE, "checkpoints", "tensorboard"):
                remove(folder / name)

    def length(self) -> int:
        """Timesteps of training, those of what it begins with included; episodes of a policy."""
        if self.learner is None:
            return self.panel.evaluation.episodes
        return sum(self._budget(one)[1] for one in self._chain())

    def done(self) -> int:
        """Timesteps so far."""
        return int(self._on_the_way("timesteps"))

    def spent(self) -> float:
        """Seconds of training so far."""
        return self._on_the_way("seconds")

    def _on_the_way(self, column: str) -> float:
        rows = [read_curve_rows(folder) for folder in (self.folder, self.folder / "start")]
        return sum(float(part[-1][column]) for part in rows if part)

    def summary(self, result: Mapping[str, Any]) -> str:
        """Return and success, the way it was trained first."""
        ways = sorted(result["statistics"].items(), key=lambda kv: kv[0] != result["way"])
        parts = (f"{w} {s['return']:.2f}, {100 * s['success']:.1f} %" for w, s in ways)
        return "; ".join(parts)

    # Training

    def _chain(self) -> list[PanelLearner]:
        """The learner, and before it the one whose model it begins with."""
        assert self.learner is not None
        first = self.learner.start
        return [*([self.panel.algorithms[first]] if first else []), self.learner]

    def _budget(self, learner: PanelLearner) -> tuple[str, int]:
        """The unit that the learner is measured in, and how many.

        Raises:
            ValueError: the panel gives none to such a learner.
        """
        row, view = find(learner.algorithm), entry_of(self.place.id).view
        plays = {"token": ("tokens", "dialogues"), "act": ("acts", "dialogues")}.get(view, ())
        units = plays if row.plays else ("gradient_steps",)
        budget = self.place.budget_of(learner)
        for unit in units:
            if unit in budget:
                return unit, budget[unit]
        raise ValueError(
            f"{self}: expected a budget of {' or '.join(units)} in the panel {self.panel.label}, "
            f"got {budget}"
        )

    def _settings(self, learner: PanelLearner) -> dict[str, Any]:
        row, entry = find(learner.algorithm), entry_of(self.place.id)
        unit, amount = self._budget(learner)
        kind = entry.kind.actions
        found = read_hyperparameters(row, entry.id, learner.hyperparameters, None, kind)
        found |= {"n_timesteps": amount} if unit != "dialogues" else {"dialogues": amount}
        if row.reads:
            found["data"] = vars(self._stored())
        if learner.start:
            found["start"] = self._settings(self.panel.algorithms[learner.start])
        return found

    def _train(self) -> dict[str, str]:
        """Train what is missing; the hash of the stored dialogues, if there are any."""
        if self.learner is None:
            return {}
        digests = {}
        chain = self._chain()
        for learner in chain:
            last = learner is chain[-1]
            folder = self.folder if last else self.folder / "start"
            reads = find(learner.algorithm).reads
            if (folder / MODEL).is_file() and not reads:
                continue
            dataset = self._dataset() if reads else None
            if dataset is not None:
                digests[self._stored().policy] = digest_of(dataset)
            if not (folder / MODEL).is_file():
                begin = self.folder / "start" / MODEL if last and len(chain) > 1 else None
                self._train_one(learner, folder, dataset, begin)
        return digests

    def _train_one(
        self, learner: PanelLearner, folder: Path, dataset: Any, begin: Path | None
    ) -> None:
        unit, amount = self._budget(learner)
        dialogues = amount if unit == "dialogues" else None
        agents.train(
            self.place.id,
            learner.algorithm,
            total_timesteps=None if dialogues else amount,
            seed=APART * self.seed,
            log_dir=folder,
            hyperparameters=dict(learner.hyperparameters),
            device="cpu",
            progress_bar=False,
            env_kwargs=dict(self.place.settings) or None,
            checkpoint_every=CHECKPOINT_EVERY,
            resume=True,
            data=dataset,
            dialogues=dialogues,
            init_from=begin,
        )

    def _stored(self) -> StoredDialogues:
        if self.place.data is None:
            raise ValueError(f"{self}: expected `data` in the panel {self.panel.label}, got none")
        return self.place.data

    def _dataset(self) -> Any:
        """The panel's stored dialogues; whoever needs them first collects them."""
        stored = self._stored()
        known = digest([self.place.id, self.place.settings, vars(stored)])
        home = self.folder.parents[1] / "data" / f"{self.place.short}-{stored.policy}-{known}"
        with locked(home.with_name(f"{home.name}-collecting"), LONG):
            return dialgym.collect(
                self.place.id,
                stored.policy,
                stored.episodes,
                stored.seed,
                path=home,
                env_kwargs=dict(self.place.settings),
                policy_kwargs=dict(stored.policy_kwargs),
            )


def digest_of(dataset: Any) -> str:
    """16 hexadecimal digits of stored dialogues: the return and length of each."""
    content = dataset.returns.astype("<f4").tobytes() + dataset.lengths.astype("<i8").tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def jobs_of(
    panel: Panel,
    algorithms: Sequence[str],
    places: Sequence[PanelEnvironment],
    seeds: Sequence[int],
    out: Path,
) -> list[Job]:
    """Every cell, seed by seed: what is cut short covers all environments.

    Args:
        panel: what is run.
        algorithms: learners of the panel, others of the table of algorithms, reference policies.
        places: environments of the panel; those that an algorithm cannot play are left out.
        seeds: of the trainings.
        out: the folder of all panels.

    Raises:
        ValueError: a name is unknown or may be of no row, nothing is left, or a setting is
            impossible.
    """
    if panel.imported_from:
        raise ValueError(
            f"panel {panel.name!r} takes over the rows of another command: run "
            f"`dialgym benchmark {panel.imported_from}`, with "
            f"--results benchmarks/results/{panel.imported_from}"
        )
    root = out.resolve()
    found: list[Job] = []
    for seed in seeds:
        panel.check_seed(seed, "--seeds")
        for place in places:
            for name in dict.fromkeys(algorithms):
                learner = learner_named(panel, name)
                called = check_name(name.replace(":", "."), "--algorithms, name of the row")
                if learner is None or _plays(panel, learner, place):
                    file = root / row_file(panel.name, called, place.id, seed)
                    folder = file.with_suffix("")
                    found.append(PanelJob(panel, place, called, learner, seed, folder))
    if not found:
        raise ValueError(
            f"--algorithms: none of {', '.join(algorithms) or 'no names'} plays "
            f"{', '.join(place.short for place in places) or 'no environment'}"
        )
    for job in found:
        job.description()
    return found


def learner_named(panel: Panel, name: str) -> PanelLearner | None:
    """A learner of the panel, or of the table of algorithms; None for a reference policy.

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


def cells_asked_for(panel: Panel, names: Iterable[str] | None = None) -> int:
    """How many cells learners and references come to, with all seeds of the panel.

    Args:
        panel: of which.
        names: of learners and references; None for all of the panel's own.

    Raises:
        ValueError: there is nothing to run in the panel, or a name is unknown.
    """
    if panel.imported_from:
        raise ValueError(f"panel {panel.name!r} takes over the rows of another command")
    names = [*panel.references, *panel.algorithms] if names is None else names
    playing = (
        learner is None or _plays(panel, learner, place)
        for learner in map(partial(learner_named, panel), names)
        for place in panel.environments
    )
    return panel.seeds * sum(playing)


def _plays(panel: Panel, learner: PanelLearner, place: PanelEnvironment) -> bool:
    if learner.environments and place.id not in [
        panel.environment(e).id for e in learner.environments
    ]:
        return False
    chain = [learner, *([panel.algorithms[learner.start]] if learner.start else [])]
    rows = [find(one.algorithm) for one in chain]
    kind = entry_of(place.id).kind.actions
    return all(not row.plays or kind in row.kind for row in rows)
