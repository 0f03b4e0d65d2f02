"""Rows of experiments: one training, or one policy, in one environment of a panel.

The file ``PANEL/NAME/ID-seedN.json`` has the return, success and length of every episode, what made
them and what they depend on. `row_files` reads them, `row_checks` says what is wrong with one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np

from dialgym.experiments.panel import DRAWN_SECRETS, Panel, PanelEnvironment, digest
from dialgym.experiments.result import DRAWN, GREEDY, Episodes
from dialgym.experiments.rules import Fingerprint, RowOrigin
from dialgym.experiments.zoo import agent_of_row, model_file
from dialgym.io.checksums import checksum
from dialgym.io.files import check_regular
from dialgym.io.saved_models import CHECKPOINT, find_checkpoint
from dialgym.registry import entry_of
from dialgym.simulators.language_model import is_language_model, replayed_model

FORM = "dialgym leaderboard row 1"
SCRIPTED = "scripted"
MODEL_ACTIONS = (DRAWN, GREEDY)
ACTIONS = (*MODEL_ACTIONS, SCRIPTED)
"""Choice of actions, ``way`` in a file: drawn, or the likeliest; a scripted policy's own."""
RETURN = "return"
COLUMNS = {"returns": RETURN, "solved": "success", "lengths": "turns"}
"""Columns that are kept of episodes, and the names of their means."""
AS_NAMED = "as named"
"""The source of data for which nothing stood in."""
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names that a row may have: they are those of folders, and stand in tables."""
WEIGHTS = "policy.safetensors"
"""Weights in the file of a model."""
CPU_SECONDS = ("cpu_seconds", "start_cpu_seconds", "data_cpu_seconds")
"""Costs of a row: its own training and scoring, what it begins with, stored dialogues. In rows that
lack the others, the first is all."""
Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ExperimentRow:
    """A row of an experiment.

    Attributes:
        values: content of its file, in which `row_problems` has found nothing wrong.
        file: where it is from.
        sealed: it has the checksum of its content.
    """

    values: Values
    file: Path
    sealed: bool = True

    @property
    def name(self) -> str:
        """Name in tables."""
        return str(self.values["name"])

    @property
    def id(self) -> str:
        """The environment."""
        return str(self.values["id"])

    @property
    def seed(self) -> int:
        """Seed of the training, which chooses the episodes too."""
        return int(self.values["seed"])

    @property
    def actions(self) -> str:
        """The choice of actions while the policy learned, by which it is ranked."""
        return str(self.values["way"])

    @property
    def is_scripted(self) -> bool:
        """True if its policy is no model."""
        return bool(self.values["kind"] == SCRIPTED)

    @property
    def is_served(self) -> bool:
        """True if its policy is a language model behind a service, which is played from a tape."""
        return self.is_scripted and is_language_model(self.values["policy"])

    @property
    def source(self) -> str:
        """``as named``, or what stood in for the data that the settings name."""
        return str(self.values["hashes"].get("source", AS_NAMED))

    @property
    def origin(self) -> RowOrigin:
        """The rules that it says it was played by."""
        settings = {**self.values.get("env_kwargs", {}), **self.values.get("held_out", {})}
        stored = self.values["hashes"].get("rules")
        rules = None if stored is None else Fingerprint.of_values(stored)
        stand_in = None if self.source == AS_NAMED else self.source
        return RowOrigin(self.name, self.id, settings, stand_in, rules)

    @property
    def cpu_seconds(self) -> float | None:
        """CPU seconds of all that led to it: dialogues, what it begins with, training, scoring.

        None where it is not known, or where a GPU did a part of it.
        """
        cost = self.values["cost"]
        on_gpu = "accelerator" in self.values.get("hardware", {})
        if on_gpu or not isinstance(cost.get("cpu_seconds"), int | float):
            return None
        return float(sum(cost.get(name, 0.0) for name in CPU_SECONDS))

    # Its policy

    @property
    def policy_digits(self) -> str:
        """Hash of what runs of a name have in common: its policy and settings, but for a model."""
        names = ["kind", "policy_kwargs"]
        if self.values.get("kind") != "model":  # whose policy is a file, another for each seed
            names += ["policy", "settings"]
        return digest([self.values.get(name) for name in names])

    @property
    def model_digits(self) -> str | None:
        """Hash of its model; None for a scripted policy."""
        hashes = self.values["hashes"]
        return hashes.get("weights") or hashes.get("model")

    @property
    def model_file(self) -> Path:
        """Path of its model, if it is here."""
        return self.file.with_suffix("") / CHECKPOINT

    @property
    def is_replayable(self) -> bool:
        """True if its policy is here, so that `dialgym leaderboard check --replay` can play it."""
        known = self.is_scripted and not self.is_served
        return known or self.model_file.is_file() or self._in_zoo is not None

    @cached_property
    def _in_zoo(self) -> Path | None:
        """The file of its model in the zoo; None where that has none, or another one."""
        agent = agent_of_row(self.values)
        file = None if agent is None else model_file(agent)
        return file if file is not None and is_model_of(self.values["hashes"], file) else None

    def find_policy(self, given: str | Path | None = None) -> Any:
        """The policy, to be opened: what a scripted row says, or the path or name of its model.

        Args:
            given: where its model lies, if it has one; beside the file or in the zoo if None. Of a
                language model behind a service, the tape of its answers.

        Raises:
            FileNotFoundError: it is not there.
            ValueError: it is another model.
        """
        if self.is_served:
            return self._on_tape(given)
        if self.is_scripted:
            return policy_of_row(str(self.values["policy"]), self.values)
        here = self.model_file if self.model_file.is_file() else self._in_zoo or self.model_file
        place = Path(given) if given else here
        path = find_checkpoint(place)
        if path is None:
            raise FileNotFoundError(
                f"{str(self.file)!r}: its model is not at {str(place)!r}, nor in the zoo. Say "
                "where it is (--model FILE)."
            )
        if not is_model_of(self.values["hashes"], path):
            raise ValueError(
                f"{str(path)!r} is not the model of {str(self.file)!r}: another checksum"
            )
        return policy_of_row(str(path), self.values)

    def _on_tape(self, tape: str | Path | None) -> Any:
        if tape is None:
            raise FileNotFoundError(
                f"{str(self.file)!r}: nobody is asked to play it again. Give the tape of its "
                "answers (--model TAPE), which -p record=TAPE has made."
            )
        return replayed_model(self.values["policy"], self.values["settings"], tape)

    # Its figures

    def column(self, metric: str, actions: str | None = None) -> np.ndarray | None:
        """(E,) the score (None without references), the return or the success of each episode."""
        part = self.values["episodes"].get(actions or self.actions)
        if part is None:
            return None
        if metric == "success":
            return 100 * np.asarray(part["solved"], float)
        returns = np.asarray(part["returns"], float)
        if metric == RETURN:
            return returns
        if self._references is None:
            return None
        random, expert = self._references
        return np.asarray(100 * (returns - random) / (expert - random))

    @cached_property
    def _references(self) -> tuple[float, float] | None:
        stored = self.values["hashes"].get("references")
        return None if stored is None else (float(stored[0]), float(stored[1]))

    def measure(self, name: str, actions: str) -> np.ndarray | None:
        """(E,) a measure of each reply, (1,) where it is of all of them; None if not measured.

        The ``return`` is one, too.
        """
        if name == RETURN:
            return self.column(RETURN, actions)
        part = self.values.get("measures", {}).get(actions)
        if part is None or name not in part["figures"]:
            return None
        return np.asarray(part["replies"].get(name, [part["figures"][name]]), float)


def total_cpu_seconds(rows: Iterable[ExperimentRow]) -> float | None:
    """CPU seconds that rows have cost; dialogues that several have learned from count once.

    None where no row says.
    """
    every = [row for row in rows if row.cpu_seconds is not None]
    shared: dict[str, float] = {}
    for row in every:
        key = str([row.values["panel"], row.id, row.values["hashes"].get("data")])
        shared[key] = max(shared.get(key, 0.0), row.values["cost"].get("data_cpu_seconds", 0.0))
    own = [row.values["cost"].get(name, 0.0) for row in every for name in CPU_SECONDS[:2]]
    return float(sum(own) + sum(shared.values())) if every else None


# Its model


def model_hash(path: Path) -> dict[str, str]:
    """SHA-256 of a model by the name that rows have for it.

    That of its ``weights``; a file holds the time, too, so that of the file (``model``) is another
    after each training. A file without safetensors has only that one.
    """
    check_regular(path)
    if is_zipfile(path):
        with ZipFile(path) as archive:
            if WEIGHTS in archive.namelist():
                with archive.open(WEIGHTS) as file:
                    return {"weights": hashlib.file_digest(file, "sha256").hexdigest()}  # type: ignore[arg-type]
    return {"model": checksum(path)}


def is_model_of(hashes: Values, path: Path | None) -> bool:
    """Return True if a row's hashes are of the model in a file; for None, if they are of none.

    Rows that were made before weights had a hash have that of the file.
    """
    if path is None:
        return not {"weights", "model"} & hashes.keys()
    if "weights" in hashes:
        return model_hash(path).get("weights") == hashes["weights"]
    return hashes.get("model") == checksum(path)


# Writing


def row_file(panel: str, name: str, env_id: str, seed: int) -> Path:
    """Path of a row's file, below the folder of all panels."""
    return Path(panel, name, f"{env_id.rpartition('/')[2]}-seed{seed}.json")


def episode_columns(part: Episodes) -> dict[str, list[Any]]:
    """Return, success and length of each episode of one seed."""
    return {
        "returns": [round(float(r), 6) for r in part.returns[0]],
        "solved": [int(s) for s in part.solved[0]],
        "lengths": [int(n) for n in part.lengths[0]],
    }


def episode_means(part: Values) -> dict[str, float]:
    """Means of `episode_columns`."""
    return {name: round(float(np.mean(part[key])), 6) for key, name in COLUMNS.items()}


def row_head(
    panel: Panel, environment: PanelEnvironment, name: str, seed: int, kind: str, policy: str
) -> dict[str, Any]:
    """Describe a row before anything is played, but for the settings of its learner."""
    return {
        "form": FORM,
        "panel": panel.name,
        "version": panel.version,
        "id": environment.id,
        "name": name,
        "seed": seed,
        "kind": kind,
        "policy": policy,
        "settings": {},
        **row_settings(environment),
    }


def protocol_of(panel: Panel, environment: PanelEnvironment) -> str:
    """Hash how policies are scored in an environment; rows keep it, so its names are fixed."""
    evaluation = panel.evaluation
    scored = {
        "episodes": evaluation.episodes,
        "seed": evaluation.seed,
        "trials": evaluation.trials,
        "target": 90.0,  # of a figure that is no longer made; kept rows have it in their hashes
        "settings": environment.settings,
        "goals": environment.goals,
    }
    more = {"held_out": environment.held_out, "measures": environment.measures}
    if evaluation.secrets != DRAWN_SECRETS:
        more["secrets"] = evaluation.secrets
    scored |= {name: value for name, value in more.items() if value}
    return digest([panel.name, panel.version, environment.id, scored])


def policy_of_row(policy: Any, values: Values) -> Any:
    """A policy with the settings that a row has of it, if any, to be opened."""
    own = values.get("policy_kwargs")
    return {"name": policy, **own} if own else policy


def name_with_settings(name: str, settings: Values) -> str:
    """The default name of a row of a policy with settings: ``random-mixture-smart0.34``."""
    parts = [f"{key}{value}" for key, value in sorted(settings.items())]
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([name, *parts]))
    return text if NAME.fullmatch(text) else f"{name[:47]}-{digest(dict(settings))}"


def row_settings(environment: PanelEnvironment) -> dict[str, Any]:
    """The settings of an environment, as they stand in a row: of training, and of scoring."""
    held_out = {"held_out": dict(environment.held_out)} if environment.held_out else {}
    return {"env_kwargs": dict(environment.settings), **held_out}


def score_references(environment: PanelEnvironment, source: str) -> list[float] | None:
    """The returns of the random policy and the expert, between which scores lie; None for none.

    Args:
        environment: whose settings, if it has any, leave no references.
        source: what stood in for the data that the settings name, or `AS_NAMED`.
    """
    if environment.scoring_settings:
        return None
    scores = entry_of(environment.id).row.references(None if source == AS_NAMED else source)
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
