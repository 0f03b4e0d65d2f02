"""Learning curves read from the folders that training writes."""

import csv
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dialgym.io.files import read_yaml
from dialgym.registry import check_id, entry_of

SB3_COLUMNS = ("time/total_timesteps", "rollout/ep_rew_mean")
FILES = ("learning_curve.csv", "progress.csv", "monitor.csv")


class Curve(NamedTuple):
    """Mean return of the episodes that ended, against environment steps.

    Attributes:
        name: that of the run's folder.
        steps: (n,) float64.
        returns: (n,) float64.
        references: the registry's mean returns where the run was made, by policy.
    """

    name: str
    steps: np.ndarray
    returns: np.ndarray
    references: Mapping[str, float]


def read_curve(path: str | PathLike[str]) -> Curve:
    """The curve in a file, or in the first of `FILES` in a run's folder.

    Knows the CSV of `dialgym train`, and of Stable-Baselines3 the CSV logger's and a Monitor's.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no learning curve.
    """
    file = _find(Path(path))
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    points = np.array(list(_points(rows)), np.float64).reshape(-1, 2)
    if not len(points):
        raise ValueError(
            f"learning curve {str(file)!r}: expected columns timesteps and mean_return, "
            "time/total_timesteps and rollout/ep_rew_mean, or l and r, and at least one row; got "
            f"{', '.join(rows[0]) if rows else 'no rows'}."
        )
    folder = file.resolve().parent
    return Curve(folder.name, points[:, 0], points[:, 1], _references(folder))


def smooth(values: np.ndarray, most: int = 100) -> np.ndarray:
    """A centred moving mean over at most 1/20 of the values; (n,), with shorter ends."""
    width = min(most, len(values) // 20)
    upto = np.concatenate([[0.0], np.cumsum(values)])
    where = np.arange(len(values))
    low, high = np.maximum(where - width, 0), np.minimum(where + width + 1, len(values))
    return (upto[high] - upto[low]) / (high - low)


def _find(path: Path) -> Path:
    files = [path] if path.is_file() else [path / name for name in FILES]
    for file in files:
        if file.is_file():
            return file
    raise FileNotFoundError(
        f"learning curve: expected a CSV file, or a folder with {', '.join(FILES)}, at "
        f"{str(path)!r}; there is none. Check the path."
    )


def _points(rows: list[dict[str, str]]) -> Iterator[tuple[float, float]]:
    steps = 0.0
    for row in rows:
        if "l" in row and "r" in row:  # a Monitor's row is an episode
            steps += float(row["l"])
            yield steps, float(row["r"])
            continue
        for step, mean in (("timesteps", "mean_return"), SB3_COLUMNS):
            if _given(row, step) and _given(row, mean):
                yield float(row[step]), float(row[mean])
                break


def _given(row: Mapping[str, str], column: str) -> bool:
    return row.get(column) not in (None, "")


def _references(folder: Path) -> dict[str, float]:
    """From the row of the environment in the run's config.yml; nothing where there is no file."""
    try:
        env_id = str(read_yaml(folder / "config.yml")["env_id"])
        check_id(env_id, f"{str(folder)!r}, config.yml")
        entry = entry_of(env_id)
        scores = entry.row.references(entry.stand_in)
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    names = {"random": "random", "expert": scores.get("expert_policy", "expert")}
    return {names[key]: scores[key] for key in names if key in scores}
