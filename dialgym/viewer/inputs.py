"""Inputs of the viewer: runs, data sets and results, recognised by their content."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialgym.datasets import load_dataset
from dialgym.errors import did_you_mean
from dialgym.experiments.benchmark import load_results
from dialgym.experiments.curves import FILES as CURVES
from dialgym.experiments.result import Result, read_json
from dialgym.io.files import check_regular
from dialgym.io.hub import PREFIX
from dialgym.io.saved_models import CHECKPOINT, CONFIGS, ZOO, find_checkpoint
from dialgym.viewer.listing import Listing
from dialgym.viewer.query import NotHereError
from dialgym.viewer.training_runs import RunFolder

RUN_FILES = (CHECKPOINT, "checkpoint.zip", "config.yml", *CURVES, *CONFIGS)
RESULTS = "results.json"
MOST_MADE = 12
RUN, DIALOGUES, SCORES = "run", "dialogues", "results"


@dataclass
class ViewerInput:
    """An input of the viewer.

    Attributes:
        number: by which requests name it.
        kind: `RUN`, `DIALOGUES` or `SCORES`.
        name: its name on the page.
        path: of its file or folder; empty if it was made here.
        content: a `RunFolder`, a `Listing`, or a list of `Result`.
    """

    number: int
    kind: str
    name: str
    path: str
    content: Any

    def about(self) -> dict[str, Any]:
        """Entry of the page's list."""
        facts = {"number": self.number, "kind": self.kind, "name": self.name, "path": self.path}
        return facts | (self.content.about() if self.kind != SCORES else _about(self.content))


class ViewerInputs:
    """All inputs, by number.

    Args:
        paths: of runs, data sets and results; ``zoo:NAME``, or ``hf:NAME`` of a data set.
        trust: data sets may name code; see `dialgym.load_dataset`.

    Raises:
        FileNotFoundError, ValueError: there is nothing at a path, or nothing that can be shown.
    """

    def __init__(self, paths: Sequence[str], trust: bool = False) -> None:
        self.trust = trust
        self.sources: dict[int, ViewerInput] = {}
        self._numbers = itertools.count()
        for path in paths:
            for kind, name, where, content in self._opened(path):
                self.add(kind, name, where, content)

    def add(self, kind: str, name: str, path: str, content: Any) -> ViewerInput:
        """Add an input; a name that is taken gets the folder before it, or a number.

        Of the inputs that were made here, the last `MOST_MADE` stay.
        """
        made = [number for number, source in self.sources.items() if not source.path]
        if not path and len(made) >= MOST_MADE:
            del self.sources[made[0]]
        taken = {source.name for source in self.sources.values()}
        number = next(self._numbers)
        longer = f"{Path(path).resolve().parent.name}/{name}" if path else name
        names = (name, longer, f"{name} ({number})")
        title = next(each for each in names if each not in taken)
        self.sources[number] = ViewerInput(number, kind, title, path, content)
        return self.sources[number]

    def find(self, number: int, kind: str) -> Any:
        """The content of a source.

        Raises:
            NotHereError: there is none of that number, or it is of another kind.
        """
        source = self.sources.get(number)
        if source is None or source.kind != kind:
            raise NotHereError(f"there is no source {number} of {kind}.")
        return source.content

    def runs(self) -> dict[str, RunFolder]:
        """The runs by name."""
        return {s.name: s.content for s in [*self.sources.values()] if s.kind == RUN}

    def _opened(self, path: str) -> Iterator[tuple[str, str, str, Any]]:
        if path.startswith(PREFIX):
            yield DIALOGUES, path, path, self._dialogues(path)
            return
        agent = find_checkpoint(path) if path.startswith(ZOO) else None
        location = Path(path).expanduser() if agent is None else agent.parent
        _check_exists(location)
        parts = list(self._parts(location))
        if not parts:
            raise ValueError(
                f"view: expected the folder of a run ({CHECKPOINT}, {CURVES[0]}), a language "
                f"model ({CONFIGS[0]}), a data set "
                f"(*.parquet), or results ({RESULTS}, or what `evaluate --json` writes) at "
                f"{str(location)!r}; there is none of them. Check the path."
            )
        for kind, file in parts:
            name = file.name or file.resolve().name
            if kind == RUN:
                yield RUN, name, str(file), RunFolder(file)
            elif kind == DIALOGUES:
                yield DIALOGUES, name, str(file), self._dialogues(file)
            else:
                title = file.resolve().parent.name if file.name == RESULTS else file.stem
                yield SCORES, title, str(file), _results(file)

    def _dialogues(self, path: Any) -> Listing:
        return Listing(load_dataset(path, trust=self.trust))

    def _parts(self, path: Path, deeper: bool = True) -> Iterator[tuple[str, Path]]:
        """Recognise the input at a path; else those in its folders."""
        if path.is_file():
            yield from _file(path)
            return
        if any((path / name).is_file() for name in RUN_FILES):
            yield RUN, path
        elif any(path.glob("*.parquet")):
            yield DIALOGUES, path
        elif (path / RESULTS).is_file():
            yield SCORES, path / RESULTS
        elif deeper:
            for child in sorted(path.iterdir()):
                if child.is_dir():
                    yield from self._parts(child, deeper=False)


def newest_runs(folder: Path = Path("runs"), most: int = 20) -> list[str]:
    """List the runs in a folder, the newest first: the default inputs."""
    if not folder.is_dir():
        return []
    runs = [p for p in folder.iterdir() if any((p / name).is_file() for name in RUN_FILES)]
    runs.sort(key=lambda run: run.stat().st_mtime, reverse=True)
    return [str(run) for run in runs[:most]]


def _check_exists(location: Path) -> None:
    if location.exists():
        if not location.is_dir():
            check_regular(location)
        return
    near = [p.name for p in location.parent.iterdir()] if location.parent.is_dir() else []
    raise FileNotFoundError(
        f"view: expected a run, a data set or results at {str(location)!r}; there is nothing."
        f"{did_you_mean(location.name, near)} Check the path."
    )


def _file(path: Path) -> Iterator[tuple[str, Path]]:
    if path.suffix == ".parquet":
        yield DIALOGUES, path
    elif path.suffix == ".json":
        yield SCORES, path
    elif path.name in RUN_FILES:
        yield RUN, path.parent


def _results(file: Path) -> list[Result]:
    """The results of a benchmark, or the one that `evaluate` wrote."""
    return load_results(file) if "results" in read_json(file) else [Result.from_json(file)]


def _about(results: Sequence[Result]) -> dict[str, Any]:
    ids = list(dict.fromkeys(env_id for result in results for env_id in result.by_id))
    return {"policies": [result.name for result in results], "envs": ids}
