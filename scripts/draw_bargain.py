"""Picture of bargaining for its page: what each deal is worth to both, and how two come to one.

python scripts/draw_bargain.py [--out docs/images]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.experiments.plots import COLOURS, FAINT, GREY, INK, new_figure, tidy
from dialgym.io.files import save_figure
from dialgym.tasks.bargain import Bargain, BargainState
from dialgym.tasks.bargain.exact import kalai_smorodinsky, nash, pareto
from dialgym.tasks.bargain.types import NONE

GAMES: Sequence[tuple[str, dict[str, Any]]] = (
    ("items", {"table": [2, 1, 3], "system": [1, 2, 2], "user": [2, 3, 1]}),
    ("goods", {"system": [5, 4, 3], "user": [3, 4, 5]}),
    ("price", {"table": 100, "system": 12, "user": 18}),
)
"""A context of each game."""
PAIR = ("tit-for-tat", "conceding")
"""Who plays: system and user."""
PARTIES = ("system", "user")


class Deals(NamedTuple):
    """Points of all deals of a context for both parties, and the offers of a dialogue."""

    system: np.ndarray  # (G,)
    user: np.ndarray
    offers: Sequence[list[int]]  # outcomes of each party
    deal: int  # of the G, or NONE


def deals_of(name: str, options: dict[str, Any]) -> Deals:
    """Play a dialogue of `PAIR` in a context."""
    task, rng = Bargain(name), np.random.default_rng(0)
    state: BargainState = task.initial(rng, options)
    possible = np.flatnonzero(task.game.possible[task.table(state, 0)]).tolist()
    place = {outcome: at for at, outcome in enumerate(possible)}
    offers: list[list[int]] = [[], []]
    players = [task.speaker_named(party, one) for party, one in zip(PARTIES, PAIR)]
    while not state.over:
        party = int(state.waiting)
        before = state.last[party]
        task.speak(state, players[party].reply(task, state, rng), rng)
        if state.last[party] != before:
            offers[party].append(place[state.last[party]])
    system, user = (points[row][possible] for points, row in zip(
        task.game.points, (state.system, state.user)))  # fmt: skip
    return Deals(system, user, offers, place.get(state.deal, NONE))


def draw(axes: Any, name: str, deals: Deals) -> None:
    """Draw all deals, their front, both solutions, and how the offers came together."""
    system, user = deals.system, deals.user
    axes.scatter(system, user, s=14, color=FAINT, edgecolors=GREY, linewidths=0.5, label="deals")
    front = np.flatnonzero(pareto(system, user))
    front = front[np.lexsort((-user[front], system[front]))]
    axes.plot(system[front], user[front], color=INK, linewidth=1, marker="o", markersize=3,
              label="Pareto front")  # fmt: skip
    for solution, marker, size, label in (
        (nash, "D", 90, "Nash"), (kalai_smorodinsky, "s", 170, "Kalai-Smorodinsky"),
    ):  # fmt: skip
        best = solution(system, user)
        axes.scatter(system[best], user[best], s=size, facecolors="none", edgecolors=COLOURS[3],
                     marker=marker, linewidths=1.3, label=label)  # fmt: skip
    for party, offers in enumerate(deals.offers):
        label = f"offers of {PAIR[party]} ({PARTIES[party]})"
        look = {"color": COLOURS[party], "marker": "^v"[party], "markersize": 6, "alpha": 0.8}
        axes.plot(system[offers], user[offers], linewidth=1.4, label=label, **look)
    if deals.deal != NONE:
        axes.scatter(system[deals.deal], user[deals.deal], s=150, marker="*", color=COLOURS[2],
                     zorder=4, label="the deal")  # fmt: skip
    tidy(axes, "both")
    axes.set_title(name, color=INK, fontsize=10)
    axes.set_xlabel("points of the system", color=INK)
    axes.set_ylabel("points of the user", color=INK)


def picture() -> Any:
    """A panel of each game."""
    figure = new_figure(10.4, 4.2)
    panels = figure.subplots(1, len(GAMES))
    for axes, (name, options) in zip(panels, GAMES):
        draw(axes, name, deals_of(name, options))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)
    return figure


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    save_figure(picture(), parser.parse_args().out / "bargain.png")


if __name__ == "__main__":
    main()
