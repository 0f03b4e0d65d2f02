"""`python -m benchmarks.soak`: attacks for a budget of CPU time, and a table of their results.

The exit status is 1 where anything has failed; each failure is printed as it happens.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from benchmarks.soak.budget import Attack, Budget, spent
from benchmarks.soak.damage import damage
from benchmarks.soak.inputs import inputs
from benchmarks.soak.kills import kills
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text

ATTACKS: dict[str, tuple[float, Attack]] = {
    "inputs": (0.5, inputs),
    "kills": (0.3, kills),
    "damage": (0.2, damage),
}
"""By name: the share of the budget, and the attack."""
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- soak: made by make soak -->\n", "<!-- end -->"


@dataclass
class Row:
    """Results of a kind of attack."""

    kind: str
    tries: int = 0
    failures: int = 0
    seconds: float = 0.0


def main(
    minutes: Annotated[float, typer.Option(min=0.1, help="CPU-minutes of all attacks.")] = 20.0,
    attacks: Annotated[str, typer.Option(help=f"Of {', '.join(ATTACKS)}.")] = ",".join(ATTACKS),
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    write: Annotated[bool, typer.Option("--write", help=f"The table into {PAGE.name}.")] = False,
) -> None:
    """Attack what may not break, and count tries and failures."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    began = time.monotonic()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DIALGYM_CACHE"] = f"{folder}/cache"
        for name in attacks.split(","):
            rows += _attacked(name, 60 * minutes, seed, Path(folder, name))
    used, passed = sum(row.seconds for row in rows), time.monotonic() - began
    text = _table(rows) + (
        f"\n{used / 60:.1f} CPU-minutes in {passed / 60:.0f} minutes of the clock, seed {seed}, "
        f"{platform.system()}, Python {platform.python_version()}.\n"
    )
    print(text)
    if write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        write_text(PAGE, f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}")
    sys.exit(any(row.failures for row in rows))


def _attacked(name: str, seconds: float, seed: int, folder: Path) -> Iterable[Row]:
    share, attack = ATTACKS[name]
    folder.mkdir()
    rows: dict[str, Row] = {}
    before = spent()
    for tally in attack(Budget(share * seconds), np.random.default_rng(seed), folder):
        row = rows.setdefault(tally.kind, Row(tally.kind))
        row.tries += tally.tries
        row.failures += len(tally.failures)
        now = spent()
        row.seconds, before = row.seconds + now - before, now
        for failure in tally.failures:
            print(f"FAILED {tally.kind}: {failure}", flush=True)
    print(f"{name}: {sum(row.tries for row in rows.values()):,} tries", flush=True)
    return rows.values()


def _table(rows: Iterable[Row]) -> str:
    head = ["attack", "tries", "failures", "CPU-seconds"]
    cells = [[r.kind, f"{r.tries:,}", f"{r.failures:,}", f"{r.seconds:,.0f}"] for r in rows]
    return markdown_table([head, *cells])


if __name__ == "__main__":
    typer.run(main)
