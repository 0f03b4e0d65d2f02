"""Cost of a step of GP-SARSA by the size of its dictionaries, as a table and a picture.

    python -m benchmarks.training.gp --out docs/images/gp_steps.png

Writes a record and prints its table. A row of 16 dictionaries, one for each act, has so many
entries in all: to decide is to predict all acts of a belief, to learn is to observe a return.
Beside it: one dictionary of all acts, as where every two acts have covariances; and regression on
all returns from scratch, whose cost is cubic.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agents.acts.gp.act_kernels import ActKernel, DeltaKernel, KindKernel
from agents.acts.gp.kernels import RBF, covariances
from agents.acts.gp.q_process import QProcess
from benchmarks.environments.timing import machine, rate
from benchmarks.tables.records import RECORDS, Figures, make_record
from dialgym.experiments.plots import new_figure, tidy
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import save_figure

NAME, COMMAND = "gp_steps", "python -m benchmarks.training.gp --out docs/images/gp_steps.png"
ACTS, FEATURES = 16, 60
SIZES = (64, 128, 256, 512, 1024, 2048)
KERNEL = RBF(100.0)
COLOURS = ("#0072b2", "#009e73", "#0072b2", "#009e73", "#d55e00")
Curves = dict[str, list[float]]
"""By what is done: milliseconds at each of the sizes."""


def process_of(entries: int, act_kernel: ActKernel) -> QProcess:
    """A process with `entries` in its dictionaries, a part for each act."""
    rng = np.random.default_rng(0)
    features = [f"f{i}" for i in range(FEATURES)]
    process = QProcess(features, KERNEL, act_kernel, 5.0, 0.0, None)
    for start in range(0, entries, 64):
        acts = [names()[i % ACTS] for i in range(start, start + 64)]
        process.observe(rng.random((64, FEATURES)), acts, rng.normal(size=(64, 1)), np.ones(64))
    assert len(process) == entries
    process.nu = 1e9
    for group in process.groups.values():
        group.nu = 1e9  # what follows is learned without new entries
    return process


def names() -> list[str]:
    """The acts, all of a kind."""
    return [f"slot{i:02}.request" for i in range(ACTS)]


def milliseconds(step: Callable[[], object]) -> float:
    """The CPU time of a step, the median of several rounds."""

    def work() -> int:
        step()
        return 1

    return 1e3 / rate(work, repeats=3, seconds=0.1)


def measure() -> dict[str, Any]:
    """The sizes, all curves, and the machine."""
    found = {name: [round(each, 4) for each in values] for name, values in curves_of().items()}
    return {"sizes": SIZES, "milliseconds": found, "machine": machine()}


def curves_of() -> Curves:
    """All curves."""
    rng = np.random.default_rng(1)
    x, y, noise = rng.random((1, FEATURES)), np.ones((1, 1)), np.ones(1)
    curves: Curves = {}
    for size in SIZES:
        for kernel, what in (
            (DeltaKernel(), "a dictionary an act"),
            (KindKernel(0.5), "one dictionary"),
        ):
            process, acts = process_of(size, kernel), names()
            decide = milliseconds(lambda p=process, a=acts: p.predict(x, a))  # type: ignore[misc]
            learn = milliseconds(lambda p=process, a=acts: p.observe(x, a[:1], y, noise))  # type: ignore[misc]
            curves.setdefault(f"decide, {what}", []).append(decide)
            curves.setdefault(f"learn, {what}", []).append(learn)
        seen, returns = rng.random((size, FEATURES)), rng.normal(size=size)

        def anew(seen: np.ndarray = seen, returns: np.ndarray = returns) -> np.ndarray:
            gram = covariances(KERNEL, seen, seen) + 25 * np.eye(len(seen))
            return np.linalg.solve(gram, returns)

        curves.setdefault("regression anew", []).append(milliseconds(anew))
    return curves


def table(figures: Figures) -> str:
    """The curves as Markdown, and the machine."""
    head = ["ms of CPU, entries in all:", *(f"{size:,}" for size in figures["sizes"])]
    rows = ([what, *map("{:.2f}".format, c)] for what, c in figures["milliseconds"].items())
    where = "; ".join(f"{name}: {value}" for name, value in figures["machine"].items())
    return f"{markdown_table([head, *rows])}\n{where}.\n"


def plot(curves: Curves, path: Path) -> None:
    """The curves as a picture.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    tidy(axes, "both")
    for i, (what, values) in enumerate(curves.items()):
        style = "--" if "one dictionary" in what else "-"
        axes.loglog(SIZES, values, style, marker="o", ms=4, color=COLOURS[i])
        axes.annotate(
            what, (SIZES[-1], values[-1]), (6, -3), textcoords="offset points", size=8,
            color=COLOURS[i],
        )  # fmt: skip
    axes.set_xlim(SIZES[0] * 0.8, SIZES[-1] * 6)
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    axes.minorticks_off()
    axes.set_xlabel("entries in all dictionaries of 16 acts")
    axes.set_ylabel("CPU time of a step in ms")
    save_figure(figure, path)


def main() -> None:
    """Measure, write the record, print its table, and draw it."""
    parser = argparse.ArgumentParser("python -m benchmarks.training.gp", description=__doc__)
    parser.add_argument("--out", type=Path, help="a picture to write")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the record")
    given = parser.parse_args()
    figures = make_record(NAME, COMMAND, measure, given.records)
    print(table(figures), end="")
    if given.out:
        plot(figures["milliseconds"], given.out)


if __name__ == "__main__":
    main()
