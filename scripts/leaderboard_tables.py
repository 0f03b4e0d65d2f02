"""The tables of docs/leaderboard_results.md, made of the rows in benchmarks/results.

    python scripts/leaderboard_tables.py [--out docs/results]

All but one are commands of ``dialgym leaderboard``, which are printed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.recipes.tables import lmrl_score, with_interval
from dialgym.cli.app import app
from dialgym.experiments.panel import panel_named
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text

ROWS = Path(__file__).parents[1] / "benchmarks" / "results"
TABLES = {
    "leaderboard": "show --all",
    "leaderboard_wordle": "compare wordle bc-ppo-separate bc-30 --actions greedy",
    "leaderboard_wordle_greedy": "compare wordle ilql bc-long --actions greedy",
    "leaderboard_wordle_drawn": "compare wordle ilql bc-long --actions drawn",
    "leaderboard_words": "compare slot-filling-words ppo handcrafted",
    "leaderboard_words_cloned": "compare slot-filling-words bc-ppo handcrafted",
    "leaderboard_domains": "compare multi-domain bc-ppo bc",
    "leaderboard_questions": "compare questions bc-ppo bc",
    "leaderboard_questions_long": "compare questions bc-long-ppo bc-long",
    "leaderboard_language": "compare language grpo bc",
}
"""By the name of the file, what prints it."""
LMRL = "leaderboard_wordle_lmrl"
LEARNERS = ("bc-30", "bc-long", "bc-ppo-separate", "ilql")
LEAST, STORED = -6.0, -2.92
"""The least return of a game, and the mean of the 50,000 stored ones of 200 words."""


def main() -> None:
    """Write all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    out = parser.parse_args().out
    for name, command in TABLES.items():
        print(f"\ndialgym leaderboard {command}")
        places = ["--results", str(ROWS), "--markdown", str(out / f"{name}.md")]
        app(["leaderboard", *command.split(), *places], standalone_mode=False)
    write_text(out / f"{LMRL}.md", lmrl_table())


def lmrl_table() -> str:
    """Learners of 200 words on LMRL-Gym's scale, whose best is the optimal policy here."""
    rows = [r for r in read_rows([ROWS], panel_named("wordle")) if r.id.endswith("Wordle-200-v0")]
    best = np.mean([r.column("return", "scripted").mean() for r in rows if r.name == "optimal"])
    lines = [["learner", "drawn", "greedy", "greedy, by seed", "CPU s a run"]]
    for name in LEARNERS:
        own = sorted((r for r in rows if r.name == name), key=lambda r: r.seed)
        returns = {
            how: [r.column("return", how).mean() for r in own] for how in ("drawn", "greedy")
        }
        drawn, greedy = (
            np.array([lmrl_score(value, LEAST, STORED, best) for value in means])
            for means in returns.values()
        )
        seconds = np.mean([r.values["cost"]["cpu_seconds"] for r in own])
        by_seed = ", ".join(f"{score:.1f}" for score in greedy)
        shown = [with_interval(drawn, 1), with_interval(greedy, 1), by_seed, f"{seconds:.0f}"]
        lines.append([name, *shown])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
