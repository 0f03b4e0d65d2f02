"""Negotiations of people: what they score, and how much of their English is understood.

    python -m benchmarks.tables.bargain FOLDER

FOLDER has Deal or No Deal, CaSiNo and CraigslistBargain (`DIALGYM_BARGAIN`). Writes a record and
prints its table, a row for each split: how many people agreed, their points over all and where
they agreed, how many deals are Pareto-optimal; then the share of their utterances that is taken for
an act, and the share of deals that are the last proposal that was understood from their words
alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.records import RECORDS, Figures, make_record
from dialgym.experiments.tables import markdown_table
from dialgym.tasks.bargain import Bargain, BargainState
from dialgym.tasks.bargain.corpus import BargainCorpus, act_of, after, context, of_split, outcome
from dialgym.tasks.bargain.exact import pareto
from dialgym.tasks.bargain.games import GAMES
from dialgym.tasks.bargain.negotiations import Negotiation
from dialgym.tasks.bargain.types import NONE
from dialgym.tasks.splits import SPLITS

NAME, COMMAND = "bargain", "python -m benchmarks.tables.bargain FOLDER"
HEAD = (
    *("game", "split", "dialogues", "agreed", "points a side", "where agreed", "Pareto-optimal"),
    *("understood", "deals read", "held again"),
)


def scores(task: Bargain, found: Sequence[Negotiation]) -> dict[str, float]:
    """Scores of people, over both parties."""
    game, points, optimal = task.game, list[float](), list[bool]()
    agreed = [one for one in found if one.deal]
    for one in agreed:
        system, user = (game.points[at][row] for at, row in enumerate(context(game, one)))
        deal = outcome(game, one.deal)
        possible = game.possible[game.table_of[0][context(game, one)[0]]]
        points += [float(system[deal]), float(user[deal])]
        front = pareto(system[possible], user[possible])
        optimal.append(bool(front[np.flatnonzero(possible).tolist().index(deal)]))
    share = len(agreed) / len(found)
    return {
        "agreed": share,
        "points": share * float(np.mean(points)) + (1 - share) * game.apart,
        "where agreed": float(np.mean(points)),
        "pareto": float(np.mean(optimal)),
    }


def understood(task: Bargain, found: Sequence[Negotiation]) -> dict[str, float]:
    """Share of utterances taken for an act, and of deals read from the words before any button."""
    texts, right = list[bool](), list[bool]()
    for one in found:
        state, offer = BargainState(*context(task.game, one)), NONE
        for text in [text for text in one.turns if not text.startswith("[")]:
            party, code = int(state.waiting), act_of(task, state, text)
            texts.append(code != NONE)
            if 0 <= code < task.game.size:
                offer = int(task.game.outcome[party][task.table(state, party), code])
            state = after(task, state, NONE)
        if one.deal:
            right.append(offer == outcome(task.game, one.deal))
    return {"understood": float(np.mean(texts)), "deals read": float(np.mean(right))}


def measure(folder: Path) -> Figures:
    """Figures of each game and split that the folder has."""
    figures: dict[str, Any] = {}
    for name in GAMES:
        task = Bargain(name, data=str(folder))
        for split in SPLITS:
            try:
                found = of_split(task.data, task.game, split)
            except ValueError:
                continue
            again = BargainCorpus(split, words=True).count(task)
            figures[f"{name}/{split}"] = {
                "dialogues": len(found),
                **scores(task, found),
                **understood(task, found),
                "held again": again,
            }
    return figures


def table(figures: Figures) -> str:
    """The table of people's negotiations."""
    rows = [list(HEAD)]
    for name, one in figures.items():
        shares = (f"{100 * one[k]:.1f} %" for k in ("pareto", "understood", "deals read"))
        points = (f"{one[k]:.2f}" for k in ("points", "where agreed"))
        count = f"{one['dialogues']:,}"
        agreed = f"{100 * one['agreed']:.1f} %"
        rows.append([*name.split("/"), count, agreed, *points, *shares, f"{one['held again']:,}"])
    return markdown_table(rows)


def main() -> None:
    """Measure, write the record and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the record")
    given = parser.parse_args()
    print(table(make_record(NAME, COMMAND, lambda: measure(given.folder), given.records)), end="")


if __name__ == "__main__":
    main()
