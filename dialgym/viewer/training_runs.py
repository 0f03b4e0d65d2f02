"""A training run as it stands: its curve so far, its settings, its sample dialogues.

Everything is read again at each request, as a running training writes its files.
"""

import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dialgym.experiments.curves import read_curve, smooth
from dialgym.io.files import read_yaml
from dialgym.io.locks import is_locked
from dialgym.io.saved_models import CHECKPOINT, find_language_model
from dialgym.registry import RegistryEntry, check_id, entry_of
from dialgym.tasks.base import SYSTEM, USER
from dialgym.viewer.query import NotHereError

SAMPLES = "samples"
MOST_POINTS = 1000
HEAD = re.compile(r"# seed (?P<seed>\d+): return (?P<gained>\S+?)(?:, (?P<end>(?:no )?success))?")
LINE = re.compile(rf"({SYSTEM}|{USER}): (.*)")


class RunFolder:
    """The folder of a training run, or of a language model.

    Args:
        folder: where it lies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def about(self) -> dict[str, Any]:
        """Entry of the run in the page's list."""
        facts = {"env": self.env_id() or "", "live": is_locked(self.folder), "plays": self.plays()}
        return {**facts, "language_model": self.is_language_model()}

    def plays(self) -> bool:
        """Return True if there is a model that can play."""
        return (self.folder / CHECKPOINT).is_file() or self.is_language_model()

    def is_language_model(self) -> bool:
        """Return True for the folder of a language model, which can speak in any environment."""
        return find_language_model(self.folder) is not None

    def fits(self, entry: RegistryEntry) -> bool:
        """Return True if its model may play an environment, as far as the folder tells."""
        if self.is_language_model():
            return not entry.kind.of_acts
        env_id = self.env_id()
        return env_id is not None and entry_of(env_id).row.task == entry.row.task

    def env_id(self) -> str | None:
        """The environment of its `config.yml`, if its id is known here."""
        name = str(self.config().get("env_id"))
        try:
            check_id(name, str(self.folder))
            return entry_of(name).id
        except ValueError:
            return None

    def config(self) -> dict[str, Any]:
        """Its `config.yml`, what JSON lacks (dates, sets) as text; empty where there is none, or
        one half written."""
        try:
            values = read_yaml(self.folder / "config.yml")
        except (OSError, ValueError):
            return {}
        known = values if isinstance(values, dict) else {}
        plain: dict[str, Any] = json.loads(json.dumps(known, default=str, skipkeys=True))
        return plain

    def shown(self) -> dict[str, Any]:
        """The curve, the settings and which samples there are."""
        newest = max((f.stat().st_mtime for f in self.folder.glob("*.csv")), default=None)
        return {
            **self.about(),
            "folder": str(self.folder),
            "curve": self._curve(),
            "config": self.config(),
            "evaluations": list(self._evaluations()),
            "samples": self.samples(),
            "idle": None if newest is None else max(0.0, time.time() - newest),
        }

    def samples(self) -> list[int]:
        """The timesteps of the files of sample dialogues."""
        names = (self.folder / SAMPLES).glob("*.txt")
        return sorted(int(file.stem) for file in names if file.stem.isdecimal())

    def dialogues(self, timesteps: int) -> list[dict[str, Any]]:
        """The sample dialogues of one time.

        Raises:
            NotHereError: there are none.
        """
        file = self.folder / SAMPLES / f"{timesteps}.txt"
        if not file.is_file():
            raise NotHereError(f"there are no samples at {timesteps} timesteps.")
        return list(read_samples(file.read_text("utf-8")))

    def _curve(self) -> dict[str, Any]:
        try:
            curve = read_curve(self.folder)
        except (OSError, ValueError, csv.Error):  # it has not begun, or is being written
            return {"steps": [], "returns": [], "smooth": [], "references": {}}
        last = len(curve.steps) - 1
        shown = np.linspace(0, last, min(last + 1, MOST_POINTS)).round().astype(int)
        return {
            "steps": curve.steps[shown].tolist(),
            "returns": curve.returns[shown].tolist(),
            "smooth": smooth(curve.returns)[shown].tolist(),
            "references": dict(curve.references),
        }

    def _evaluations(self) -> Iterator[tuple[int, float]]:
        """Timesteps and mean return of each evaluation; none while the file is being written."""
        try:
            with np.load(self.folder / "evaluations.npz", allow_pickle=False) as arrays:
                means = arrays["results"].mean(1)
                yield from zip(arrays["timesteps"].tolist(), means.tolist())
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return


def read_samples(text: str) -> Iterator[dict[str, Any]]:
    """The dialogues in a file of samples: a head with seed and return, then the transcript.

    A line that begins with no party goes on with the utterance before.
    """
    sample: dict[str, Any] | None = None
    for line in text.splitlines():
        head, said = HEAD.fullmatch(line), LINE.fullmatch(line)
        if head:
            if sample:
                yield sample
            success = None if head["end"] is None else head["end"] == "success"
            sample = {"seed": head["seed"], "return": _float(head["gained"]), "success": success}
            sample["turns"] = []
        elif sample is not None and said:
            sample["turns"].append({"party": said[1], "text": said[2]})
        elif sample and sample["turns"] and line:
            sample["turns"][-1]["text"] += f"\n{line}"
    if sample:
        yield sample


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
