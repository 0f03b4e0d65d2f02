"""Conformance of three public games of TextArena: verdicts of all checks, and what was found.

    python -m benchmarks.tables.conformance [--episodes 50]

It needs the extra ``textarena``. Each game is played at random with texts in the form that it asks
for.
"""

from __future__ import annotations

from importlib.metadata import version
from itertools import product
from typing import Any

from benchmarks.tables.records import Figures, run_measurement
from dialgym.bridges.textarena import TextArenaTask
from dialgym.experiments.tables import markdown_table
from dialgym.testing import CheckSettings, check_environment

NAME, COMMAND = "conformance", "python -m benchmarks.tables.conformance"
GAMES: dict[str, tuple[str, ...]] = {
    "GuessTheNumber-v0": tuple(f"[{number}]" for number in range(1, 21)),
    "Blackjack-v0": ("[Hit]", "[Stand]"),
    "Minesweeper-v0": tuple(f"[{row} {column}]" for row, column in product(range(8), repeat=2)),
}
"""Texts to say by the game."""


def measure(episodes: int) -> dict[str, Any]:
    """The results of each game."""
    games = {}
    for name, texts in GAMES.items():
        settings = CheckSettings(episodes=episodes, texts=texts)
        report = check_environment(TextArenaTask(name).environment, settings)
        games[name] = [result._asdict() for result in report.results]
    return {"dialogues": episodes, "textarena": version("textarena"), "games": games}


def table(figures: Figures) -> str:
    """Verdicts by check and game, then the evidence of each fault, range of rewards and noise."""
    games = figures["games"]
    checks = [result["check"] for result in next(iter(games.values()))]
    by_check = {
        game: {result["check"]: result for result in results} for game, results in games.items()
    }
    verdicts = [[check, *(by_check[game][check]["verdict"] for game in games)] for check in checks]
    head = [f"TextArena {figures['textarena']}, {figures['dialogues']} dialogues each", *games]
    faults = [
        [game, result["check"], f"`{result['evidence']}`"]
        for game, results in games.items()
        for result in results
        if result["verdict"] == "fail" or result["check"].startswith(("noise", "rewards"))
    ]
    return "\n".join(
        [markdown_table([head, *verdicts]), markdown_table([["game", "check", "found"], *faults])]
    )


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 50, measure, table)
