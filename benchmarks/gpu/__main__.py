"""Measure all learners on this machine's GPU in a few minutes: `python -m benchmarks.gpu`."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.measurements import MEASUREMENTS, Measurement
from benchmarks.gpu.plans import Plan
from benchmarks.gpu.report import MARKDOWN, Row, write
from dialgym.versions import hardware, versions


def main(arguments: Sequence[str] | None = None) -> None:
    """Perform the measurements one after the other; what is done is on disk after each."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"), help="folder of the figures")
    parser.add_argument("--minutes", type=float, default=10.0, help="after which nothing begins")
    given = parser.parse_args(arguments)
    if not given.minutes >= 0:
        parser.error(f"--minutes: expected 0 or more, got {given.minutes}")
    rows = measure(Plan.of_this_machine(), given.out, given.minutes)
    print(f"\n{(given.out / MARKDOWN).read_text('utf-8')}")
    if not any(row.figures for row in rows):
        raise SystemExit("nothing could be measured")


def measure(plan: Plan, out: Path, minutes: float) -> list[Row]:
    """The rows of all measurements; one that fails is a row that says why, and the next begins.

    Args:
        plan: what is run.
        out: the folder of the files, which are written after each measurement.
        minutes: after which no measurement and no further iteration begins. Each may take as much
            of what is left as the others that are to come.
    """
    about = _about(plan, minutes)
    end, rows = time.monotonic() + 60 * minutes, list[Row]()
    for i, (name, work) in enumerate(MEASUREMENTS.items()):
        now = time.monotonic()
        until = now + (end - now) / (len(MEASUREMENTS) - i)
        rows.append(_row(name, work, plan, until) if now < end else _late(name, minutes))
        write(out, about, rows)
        print(f"{name}: {rows[-1].error or f'{rows[-1].seconds:.0f} s'}", flush=True)
    return rows


def _row(name: str, work: Measurement, plan: Plan, until: float) -> Row:
    started = time.monotonic()
    if plan.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    try:
        figures, error = dict(work(plan, until)), None
        if plan.device == "cuda":
            figures["memory, GiB"] = torch.cuda.max_memory_allocated() / 2**30
    except Exception as problem:  # whatever it is, the others are worth having
        figures, error = {}, f"{type(problem).__name__}: {' '.join(str(problem).split())}"
    gc.collect()  # a model holds an environment, which holds it
    if plan.device == "cuda":
        torch.cuda.empty_cache()
    return Row(name, figures, round(time.monotonic() - started, 1), error)


def _late(name: str, minutes: float) -> Row:
    return Row(name, error=f"not begun: the {minutes:g} minutes were over")


def _about(plan: Plan, minutes: float) -> dict[str, Any]:
    known = versions()
    return {
        "device": plan.name,
        "torch": known["torch"],
        "dialogues at once": plan.n_envs,
        "epochs": plan.n_epochs,
        "minutes": minutes,
        "processor": hardware()["processor"],
        "versions": known,
    }


if __name__ == "__main__":
    main()
