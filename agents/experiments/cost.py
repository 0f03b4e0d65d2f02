"""What a training takes: seconds over all processes that have worked at it, and its curve."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.experiments.job import read_curve_rows
from dialgym.io.files import read_json, write_text


@contextmanager
def clocked(file: Path) -> Iterator[None]:
    """Add up what the block takes, over all processes that have worked at it, killed ones too."""
    before = read_json(file, "a cost") if file.is_file() else {}
    base = {name: before.get(name, 0.0) for name in ("wall_seconds", "cpu_seconds")}
    wall, cpu, ended = time.monotonic(), time.process_time(), threading.Event()

    def write() -> None:
        spent = {
            "wall_seconds": round(base["wall_seconds"] + time.monotonic() - wall, 1),
            "cpu_seconds": round(base["cpu_seconds"] + time.process_time() - cpu, 1),
        }
        write_text(file, json.dumps(spent) + "\n")

    def keep() -> None:
        while not ended.wait(10.0):
            write()

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write()


def short_curve(folder: Path) -> list[list[float]]:
    """Timesteps, seconds and mean return while learning; at most 200 of the rows."""
    rows = [row for row in read_curve_rows(folder) if row.get("mean_return")]
    kept = rows[:: max(1, -(-len(rows) // 200))]
    return [[float(row[k]) for k in ("timesteps", "seconds", "mean_return")] for row in kept]
