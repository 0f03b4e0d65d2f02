"""Negotiations of people: what they score, and how much of their English is understood.

    python -m benchmarks.tables.bargain FOLDER

FOLDER has Deal or No Deal, CaSiNo and CraigslistBargain (`DIALGYM_BARGAIN`). Writes a record and
prints its table, a row for each split: how many people agreed, their points over all and where
they agreed, how many deals are Pareto-optimal; then the share of their utterances that is taken for
an act, and the share of deals that are the last proposal that was understood from their words
alone; and how many of their words that are taken for an acceptance meet an offer that is the deal
that they made, or another.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import takewhile
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
from dialgym.tasks.bargain.types import ACCEPT, NONE, PriorOffers, prior_offers
from dialgym.tasks.splits import SPLITS

NAME, COMMAND = "bargain", "python -m benchmarks.tables.bargain FOLDER"
HEAD = (
    *("game", "split", "dialogues", "agreed", "points a side", "where agreed", "Pareto-optimal"),
    *("understood", "deals read", "accepted", "falsely", "held again"),
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
    """Readings of the words before any button, beside what people agreed on.

    Returns:
        The share of utterances taken for an act; the share of deals that are the last proposal;
        and, by dialogue with a deal or without one, how many acceptances are of the deal that was
        made (``accepted``), and how many of another (``falsely``), which would have ended it.
    """
    texts, right = list[bool](), list[bool]()
    accepted = {True: 0, False: 0}
    for one in found:
        deal, offer = outcome(task.game, one.deal), NONE
        for heard, code, proposed in readings(task, one):
            texts.append(code != NONE)
            offer = proposed if proposed != NONE else offer
            if code == task.game.size + ACCEPT and heard.other != NONE:
                accepted[heard.other == deal] += 1
        if one.deal:
            right.append(offer == deal)
    return {
        "understood": float(np.mean(texts)),
        "deals read": float(np.mean(right)),
        "accepted": accepted[True],
        "falsely": accepted[False],
    }


def readings(task: Bargain, one: Negotiation) -> Iterator[tuple[PriorOffers, int, int]]:
    """Readings of the words before any button: what was heard, the act, the outcome proposed.

    No act ends the dialogue.
    """
    state = BargainState(*context(task.game, one))
    for text in takewhile(lambda text: not text.startswith("["), one.turns):
        heard, code = prior_offers(state), act_of(task, state, text)
        then = after(task, state, code)
        proposed = then.last[heard.party] if 0 <= code < task.game.size else NONE
        yield heard, code, proposed
        state = after(task, state, NONE) if then.over else then


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
        agreed = f"{100 * one['agreed']:.1f} %"
        count, *counts = (f"{one[k]:,}" for k in ("dialogues", "accepted", "falsely", "held again"))
        rows.append([*name.split("/"), count, agreed, *points, *shares, *counts])
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
