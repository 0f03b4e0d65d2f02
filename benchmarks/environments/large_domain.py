"""A slot-filling domain of as many rows as one likes.

``python -m benchmarks.environments.large_domain`` prints what the domain costs: seconds and memory
until it is a task, and dialogues a CPU-second.
"""

import json
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

NAME, KIND = "Branches", "branch"
SLOTS = ("area", "food", "street", "style")
"""Slots that the system asks for."""
ALIKE = 2.2
"""Rows that share the values of three slots, on average: goals are what two or three rows meet."""
ASKED = ("addr", "phone")
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "le", "mi", "no", "ru", "sa", "te", "vi", "wo")


def write_domain(folder: str | Path, rows: int, names: int, seed: int = 0) -> Path:
    """Write the two files of a domain; the path that `load_domain` takes.

    Args:
        folder: where to.
        rows: of the database.
        names: how many names they share.
        seed: of the values, which are drawn independently and uniformly.
    """
    rng = np.random.default_rng(seed)
    path = Path(folder) / NAME
    called = [_word(place, 6) for place in range(names)]
    each = max(3, round((rows / ALIKE) ** (1 / 3)))
    values = {slot: [f"{slot[:2]}{_word(i, 3)}" for i in range(each)] for slot in SLOTS}
    rules = {
        "type": KIND,
        "requestable": ["name", *SLOTS, *ASKED],
        "system_requestable": list(SLOTS),
        "informable": {"name": called, **values},
    }
    Path(f"{path}-rules.json").write_text(json.dumps(rules), encoding="utf-8")
    drawn = [rng.integers(each, size=rows).tolist() for _ in SLOTS]
    cells = zip(rng.integers(names, size=rows).tolist(), *drawn)
    with closing(sqlite3.connect(f"{path}-dbase.db")) as connection:
        columns = ", ".join(("name", *SLOTS, *ASKED))
        connection.execute(f"CREATE TABLE {NAME} ({columns})")
        places = "?, " * (len(SLOTS) + 2) + "?"
        connection.executemany(
            f"INSERT INTO {NAME} VALUES ({places})",
            (
                (called[name], *(v[i] for v, i in zip(values.values(), row)), f"{k} road", f"0{k}")
                for k, (name, *row) in enumerate(cells)
            ),
        )
        connection.commit()
    return path


def _word(place: int, length: int) -> str:
    """A word of its own for each place."""
    base, parts = len(SYLLABLES), []
    for _ in range(length):
        place, digit = divmod(place, base)
        parts.append(SYLLABLES[digit])
    return "".join(reversed(parts))


def main(
    rows: Annotated[int, typer.Option(help="Of the database.")] = 1_000_000,
    names: Annotated[int, typer.Option(help="How many names they share.")] = 5_000,
    dialogues: Annotated[int, typer.Option(help="How many to time.")] = 2_000,
    env: Annotated[int, typer.Option(help="PyDial's environment.")] = 1,
) -> None:
    """Print what such a domain costs."""
    from dialgym.rollouts import Player
    from dialgym.tasks.slot_filling import SlotFilling

    with TemporaryDirectory() as folder:
        path = write_domain(folder, rows, names)
        begun = time.process_time()
        task = SlotFilling(domain=path, env=env)
        task.domain.database.rows[0]
        made = time.process_time() - begun
    typer.echo(f"{rows:,} rows, {names:,} names: made in {made:.1f} CPU-s, {_memory():.2f} GB")
    player = Player(task, "handcrafted", num_envs=64)
    begun = time.process_time()
    list(player.play([(1, episode) for episode in range(64)]))
    typer.echo(f"first 64 dialogues: {time.process_time() - begun:.1f} CPU-s")
    begun = time.process_time()
    success = [p.success for p in player.play([(0, episode) for episode in range(dialogues)])]
    rate = dialogues / (time.process_time() - begun)
    share = float(np.concatenate(success).mean())
    typer.echo(f"{rate:.0f} dialogues a CPU-second, success {share:.3f}, {_memory():.2f} GB")


def _memory() -> float:
    """Most gigabytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    typer.run(main)
