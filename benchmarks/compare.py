"""Speed before and after a change: `python -m benchmarks.compare CHECKOUT [parts]`.

Two checkouts of the project measure the same parts in turns, before after before after, so that
both meet the same load of a shared machine; what counts is the median of the ratios of the turns.
Make the earlier one with `git worktree add FOLDER REVISION`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from dialgym.errors import unknown
from dialgym.io.files import write_text

ENVIRONMENTS = ("steps", "dialogues", "rewards", "replies", "imports")
TRAINING = ("tiny", "iteration", "rollout", "update", "language", "offline")
DRIVER = """
import importlib, json, sys

name, part, repeats, seconds = json.loads(sys.argv[1])
module = importlib.import_module(name)
if hasattr(module, "figures"):
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = module.figures([part], repeats)
else:
    measure = lambda work: module.rate(work, repeats, seconds)
    found = {
        "steps": lambda: module.step_figures({}, measure),
        "dialogues": lambda: module.dialogue_figures(measure),
        "rewards": lambda: module.taught_figures(measure),
        "replies": lambda: module.reply_figures({}, measure),
        "imports": lambda: module.import_figures(repeats),
    }[part]()
print("FIGURES", json.dumps([(f.what, f.value, f.unit) for f in found]))
"""
Figures = dict[str, tuple[float, str]]


def measured(checkout: Path, part: str, repeats: int, seconds: float) -> Figures:
    """Figures of one part, by name, as the code of a checkout has them.

    Raises:
        RuntimeError: the measurement failed; the message names the cause.
    """
    home = f"benchmarks.{'environments' if part in ENVIRONMENTS else 'training'}.__main__"
    run = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps([home, part, repeats, seconds])],
        capture_output=True,
        text=True,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("FIGURES ")]
    if run.returncode or not lines:
        cause = (run.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        raise RuntimeError(f"measuring {part} in {checkout} failed: {cause}")
    found = json.loads(lines[-1].removeprefix("FIGURES "))
    figures: Figures = {}
    heading = ""
    for what, value, unit in found:  # an indented name belongs to the one before it
        heading = heading if what.startswith(" ") else what
        figures[f"{heading}: {what.strip()}" if what.startswith(" ") else what] = value, unit
    return figures


def compare(
    before: Path, after: Path, part: str, turns: int, repeats: int, seconds: float
) -> list[tuple[str, float, float, float]]:
    """Name, median before, median after and median ratio of each figure that both have.

    A ratio above 1 is faster: rates are divided after by before, times the other way round.
    """
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    units: dict[str, str] = {}
    for _ in range(turns):
        old, new = (measured(side, part, repeats, seconds) for side in (before, after))
        for name in old.keys() & new.keys():
            units[name] = old[name][1]
            values[name].append((old[name][0], new[name][0]))
    rows = []
    for name, pairs in values.items():
        ratios = [a / b if units[name] == "s" else b / a for a, b in pairs]
        first, second = (median(side) for side in zip(*pairs))
        rows.append((name, first, second, median(ratios)))
    return sorted(rows)


def main(
    before: Annotated[Path, typer.Argument(help="A checkout of the earlier revision.")],
    parts: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of {', '.join((*ENVIRONMENTS, *TRAINING))}; all by default."),
    ] = None,
    turns: Annotated[int, typer.Option(min=1, help="How often each side measures.")] = 3,
    repeats: Annotated[int, typer.Option(min=1, help="Runs within each turn.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.0, help="CPU-seconds of a run.")] = 0.5,
    out: Annotated[Path | None, typer.Option(help="Markdown file for the table.")] = None,
) -> None:
    """Measure two checkouts in turns and print the ratios, above 1 where this one is faster."""
    after, known = Path(__file__).parents[1], (*ENVIRONMENTS, *TRAINING)
    table = ["| part | what | before | after | ratio |", "| --- | --- | --- | --- | --- |"]
    print(*table, sep="\n")
    for part in parts or known:
        if part not in known:
            raise typer.BadParameter(str(unknown("part", part, known)))
        for name, old, new, ratio in compare(before, after, part, turns, repeats, seconds):
            table.append(f"| {part} | {name} | {old:,.4g} | {new:,.4g} | {ratio:.2f} |")
            print(table[-1], flush=True)
    if out:
        write_text(out, "\n".join(table) + "\n")


if __name__ == "__main__":
    typer.run(main)
