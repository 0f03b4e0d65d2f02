"""Discounts beside the best search for a number: which utterances are best, and how long they take.

    python -m benchmarks.tables.discount

GEM (Liu et al. 2025, arXiv 2510.01051) reports that binary search for a number is learned with a
discount below 1 alone. Here the optima are exact: by dynamic programming over all sets of numbers
that may be left, in the game of sixteen numbers (`benchmarks/recipes/numbers.csv`), which
``TwentyQuestions-v0`` plays with questions whether it is more than another, and with guesses.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables.records import Figures, make_record
from dialgym.experiments.tables import markdown_table
from dialgym.tasks.twenty_questions.table import load_table
from dialgym.tasks.twenty_questions.types import YES

NAME, COMMAND = "discount", "python -m benchmarks.tables.discount"
NUMBERS = Path(__file__).parents[1] / "recipes" / "numbers.csv"
EQUAL = 1e-9
"""Values are as good as each other within it."""
CASES = (
    ("1 for the number", 1.0, 5),
    ("1 for the number", 1.0, 8),
    ("1 for the number", 1.0, 16),
    ("1 for the number", 0.99, 16),
    ("1 for the number", 0.9, 16),
    ("-1 for an utterance", 1.0, 16),
)
"""Reward, discount and turns."""
HEAD = (
    "reward",
    "discount",
    "turns",
    "best return",
    "best to say first",
    "turns that the best take",
)


class Solution(NamedTuple):
    """The optimum of a game of which all K things may be left.

    Attributes:
        value: expected discounted return of the best.
        first: codes of the utterances that are best to say first: questions, then guesses.
        shortest, longest: expected turns of the quickest and of the slowest of the best policies.
    """

    value: float
    first: list[int]
    shortest: float
    longest: float


def solve(truth: np.ndarray, turns: int, gamma: float, found: float, cost: float) -> Solution:
    """Solve a game by dynamic programming over the sets of things that may be left.

    With n things left in the set S, all as likely, the value of t turns is the greatest of
    Q = -cost + gamma sum_j |S_j| / n V(S_j, t - 1) over the parts that a question leaves, and of
    found / n + (n - 1) / n (-cost + gamma V(S - i, t - 1)) over guesses. Of the best policies each
    may choose any utterance whose Q is the greatest.

    Args:
        truth: (K, A) bool, the answers to A questions.
        turns: utterances in a dialogue.
        gamma: discount.
        found: reward of the right guess.
        cost: of any other utterance.
    """
    things, questions = truth.shape
    sets = np.arange(1 << things)
    sizes = np.bitwise_count(sets).astype(np.float64)
    yes = [int((column << np.arange(things)).sum()) for column in truth.T.astype(np.int64)]
    parts = [(sets & mask, sets & ~mask) for mask in yes]
    value, quick, slow = (np.zeros(len(sets)) for _ in range(3))
    q = np.zeros((questions + things, len(sets)))
    for _ in range(turns):
        shortest, longest = np.ones_like(q), np.ones_like(q)
        for code in range(questions + things):
            if code < questions:
                shares = [(part, sizes[part] / sizes.clip(1)) for part in parts[code]]
                q[code] = -cost
            else:
                one = 1 << (code - questions)
                share = ((sets & one) > 0) / sizes.clip(1)
                shares = [(sets & ~one, 1 - share)]
                q[code] = found * share - cost * (1 - share)
            for after, share in shares:
                q[code] += gamma * share * value[after]
                shortest[code] += share * quick[after]
                longest[code] += share * slow[after]
        value = q.max(0)
        best = q > value - EQUAL
        quick, slow = np.where(best, shortest, np.inf).min(0), np.where(best, longest, 0).max(0)
        value[0] = quick[0] = slow[0] = 0.0
    first = np.flatnonzero(best[:, -1]).tolist()
    return Solution(float(value[-1]), first, float(quick[-1]), float(slow[-1]))


def measure() -> Figures:
    """The optima of the cases."""
    truth = load_table(NUMBERS, NAME).truth == YES
    found = []
    for reward, gamma, turns in CASES:
        wins = reward == CASES[0][0]
        solved = solve(truth, turns, gamma, float(wins), float(not wins))
        case = {"reward": reward, "discount": gamma, "turns": turns}
        found.append({**case, **{k: _rounded(v) for k, v in solved._asdict().items()}})
    return {"cases": found}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def table(figures: Figures) -> str:
    """A line for each case."""
    questions = load_table(NUMBERS, NAME).truth.shape[1]
    rows = [
        (
            case["reward"],
            f"{case['discount']:g}",
            str(case["turns"]),
            f"{case['value']:.3f}",
            _first(case["first"], questions),
            f"{case['shortest']:.2f} to {case['longest']:.2f}",
        )
        for case in figures["cases"]
    ]
    return markdown_table([HEAD, *rows])


def _first(codes: list[int], questions: int) -> str:
    """Counts of the utterances of each kind; of a single question, its text."""
    asked = [code for code in codes if code < questions]
    if codes == asked and len(asked) == 1:
        return f"more than {asked[0] + 1}?"
    return f"{len(asked)} questions, {len(codes) - len(asked)} guesses"


if __name__ == "__main__":
    print(table(make_record(NAME, COMMAND, measure)), end="")
