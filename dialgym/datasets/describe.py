"""Statistics and histograms of a dataset."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.io.files import save_figure
from dialgym.optional import require

COLOUR, INK = "#0072b2", "#333333"


@dataclass(frozen=True, eq=False)
class DatasetSummary:
    """Statistics of a data set.

    Attributes:
        dialogues, utterances: how many; utterances of the learner.
        by_policy, by_kind, by_env: dialogues of each.
        returns: (N,) float64.
        lengths: (N,) int64, utterances of the learner.
        success, terminated, truncated: shares from 0 to 1.
        tokens: dialogues whose token ids were logged.
        acts: dialogues in which the learner chose acts.
    """

    dialogues: int
    utterances: int
    by_env: Mapping[str, int]
    by_policy: Mapping[str, int]
    by_kind: Mapping[str, int]
    returns: np.ndarray
    lengths: np.ndarray
    success: float
    terminated: float
    truncated: float
    tokens: int
    acts: int = 0

    def to_text(self) -> str:
        """Some lines of text."""
        lines = [
            f"dialogues   {self.dialogues:,}, {self.utterances:,} utterances of the learner",
            f"env         {_counts(self.by_env)}",
            f"policy      {_counts(self.by_policy)}",
        ]
        if set(self.by_kind) != {""}:
            lines.append(f"kind        {_counts(self.by_kind)}")
        lines += [
            f"return      {_spread(self.returns)}",
            f"length      {_spread(self.lengths)}",
            f"success     {self.success:.1%}; terminated {self.terminated:.1%}, "
            f"truncated {self.truncated:.1%}",
            f"token ids   logged in {self.tokens:,} dialogues",
        ]
        if self.acts:
            lines.append(f"acts        chosen in {self.acts:,} dialogues")
        return "\n".join(lines)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw histograms of returns and lengths into a PNG file.

        Raises:
            ImportError: matplotlib is not installed.
        """
        module = require("matplotlib.figure", "ui", "drawing a dataset")
        figure = module.Figure((8, 3), layout="constrained")
        for axes, values, name in zip(
            figure.subplots(1, 2), (self.returns, self.lengths), ("return", "utterances")
        ):
            _histogram(axes, values)
            axes.set_xlabel(name)
            axes.spines[["top", "right"]].set_visible(False)
        figure.suptitle(f"{self.dialogues:,} dialogues", fontsize=10, color=INK)
        save_figure(figure, Path(path))

    def __str__(self) -> str:
        return self.to_text()


def describe(dataset: Any, plot: str | PathLike[str] | None = None) -> DatasetSummary:
    """Counts, distribution of returns, and lengths of a dataset.

    Args:
        dataset: a `Dataset` of at least one dialogue.
        plot: where to draw histograms, a PNG file.

    Raises:
        ValueError: the dataset is empty.
        ImportError: matplotlib is not installed, where a plot is asked for.
    """
    if not len(dataset):
        raise ValueError("describe: expected at least one dialogue; the dataset is empty.")
    lengths = dataset.lengths
    summary = DatasetSummary(
        len(dataset),
        int(lengths.sum()),
        _count(dataset["env"]),
        _count(dataset["policy"]),
        _count(dataset["kind"]),
        dataset.returns,
        lengths,
        float(dataset["success"].mean()),
        float(dataset["terminated"].mean()),
        float(dataset["truncated"].mean()),
        int((dataset["vocabulary"] != "").sum()),
        int((dataset["acts"] != "").sum()),
    )
    if plot is not None:
        summary.plot(plot)
    return summary


def _count(column: np.ndarray) -> dict[str, int]:
    names, counts = np.unique(column.astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist()))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'none'} {count:,}" for name, count in counts.items())


def _spread(values: np.ndarray) -> str:
    low, first, middle, third, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1))
    return (
        f"mean {values.mean():.3f}, deviation {values.std():.3f}; "
        f"least {low:g}, quartiles {first:g} {middle:g} {third:g}, greatest {high:g}"
    )


def _histogram(axes: Any, values: np.ndarray) -> None:
    """A bar for each value where there are few, else 30 bins."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 30:
        gap = float(np.diff(distinct).min()) if len(distinct) > 1 else 1.0
        axes.bar(distinct, counts, 0.9 * gap, color=COLOUR)
    else:
        axes.hist(values, 30, color=COLOUR)
