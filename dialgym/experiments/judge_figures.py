"""Figures of a judge beside the truth, with intervals over goals.

Arrays are (P, E): dialogues of P policies with the same E goals. Intervals are those of the
jackknife: each goal is left out in turn, with all policies (Efron & Tibshirani 1993, chapter 11),
and Student's t within the bounds of the figure. Where no goal makes a difference they are
Wilson's, of as many dialogues as there are goals that count.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dialgym.experiments.statistics import (
    PERCENT,
    Estimate,
    Interval,
    mean_estimate,
    t_estimate,
    wilson,
)
from dialgym.optional import require

SHARE, CORRELATION = (0.0, 1.0), (-1.0, 1.0)
"""Bounds of figures."""
FEWEST = 5
"""Successes, and failures, below which nothing is said of a judge beyond chance: with fewer, what
was simulated as 95 % intervals of Cohen's kappa held the truth in 55 to 93 % of cases."""
Figure = Callable[..., float]
"""Of (P, E) arrays; NaN where they do not tell it."""


class JudgedDialogues(NamedTuple):
    """Dialogues that were judged, (P, E) each.

    Attributes:
        scores: of the judge.
        called: bool, the score is at least the threshold.
        success: bool, by the rules.
        returns: of the task.
        words: that the learner said.
    """

    scores: np.ndarray
    called: np.ndarray
    success: np.ndarray
    returns: np.ndarray
    words: np.ndarray


def agreement(called: np.ndarray, success: np.ndarray) -> Estimate:
    """Share of dialogues in per cent in which the judge says what the rules say."""
    return mean_estimate([100.0 * (called == success).mean(0)[None]], PERCENT)


def kappa(called: np.ndarray, success: np.ndarray) -> float:
    """Agreement beyond chance (Cohen 1960); NaN where both are the same in all dialogues."""
    p, q = called.mean(), success.mean()
    chance = p * q + (1 - p) * (1 - q)
    if chance == 1:
        return np.nan
    beyond = float(((called == success).mean() - chance) / (1 - chance))
    return round(beyond, 12) + 0.0  # no -0


def called_among(called: np.ndarray, chosen: np.ndarray) -> float:
    """Share in per cent of the chosen dialogues that are called a success."""
    return float(100.0 * called[chosen].mean()) if chosen.any() else np.nan


def false_success(called: np.ndarray, success: np.ndarray) -> float:
    """Share in per cent of failures that are called a success."""
    return called_among(called, ~success)


def missed_success(called: np.ndarray, success: np.ndarray) -> float:
    """Share in per cent of successes that are called a failure."""
    return called_among(~called, success)


def auc(scores: np.ndarray, success: np.ndarray) -> float:
    """Probability that a success has a higher score than a failure, ties count half."""
    good, bad = int(success.sum()), int((~success).sum())
    if not good or not bad:
        return np.nan
    above = _ranks(scores)[success.ravel()].sum() - good * (good + 1) / 2
    return float(above / (good * bad))


def rank_correlation(scores: np.ndarray, returns: np.ndarray) -> float:
    """Spearman's correlation of scores and returns; NaN where either is the same everywhere."""
    return _correlation(_ranks(scores), _ranks(returns))


def length_bias(scores: np.ndarray, words: np.ndarray, success: np.ndarray) -> float:
    """Correlation of scores with words said, among dialogues of the same success."""
    left = [np.array(each, np.float64) for each in (scores, words)]
    for kind in (success, ~success):
        if kind.any():
            for each in left:
                each[kind] -= each[kind].mean()
    return _correlation(left[0].ravel(), left[1].ravel())


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation; NaN where either does not vary."""
    alike = any(float(np.ptp(each)) <= 1e-12 for each in (first, second))
    return np.nan if alike else float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks: np.ndarray = require("scipy.stats", "agents", "ranks").rankdata(values.ravel())
    return ranks


def over_goals(
    figure: Figure, columns: Sequence[np.ndarray], bounds: Interval, counting: int | None = None
) -> Estimate | None:
    """Estimate a figure with its interval over goals; None where it cannot be told.

    Args:
        figure: of the columns.
        columns: (P, E) each.
        bounds: the least and the greatest value that there can be.
        counting: dialogues that it is made of, for the interval where it does not vary; E by
            default, and never more.
    """
    value, goals = figure(*columns), columns[0].shape[1]
    if np.isnan(value):
        return None
    left = np.array([figure(*(np.delete(c, goal, 1) for c in columns)) for goal in range(goals)])
    left = left[np.isfinite(left)]
    low, high = bounds
    if len(left) > 1 and float(np.ptp(left)) > 1e-12 and low < value < high:
        return t_estimate(value, (len(left) - 1) * float(left.var()), len(left) - 1, bounds)
    share = wilson((value - low) / (high - low), min(counting or goals, goals))
    return Estimate(value, *(low + (high - low) * each for each in share.interval))


def figures_of(judged: JudgedDialogues) -> dict[str, Estimate | None]:
    """All figures by name; None for what these dialogues do not tell."""
    scores, called, success, returns, words = judged
    pair, good = (called, success), int(success.sum())
    bad = success.size - good
    rarer = min(good, bad)
    tells = rarer >= FEWEST
    return {
        "agreement, %": agreement(*pair),
        KAPPA: over_goals(kappa, pair, CORRELATION, rarer) if tells else None,
        FALSE: over_goals(false_success, pair, PERCENT, bad),
        "missed success, % of successes": over_goals(missed_success, pair, PERCENT, good),
        "AUC": over_goals(auc, (scores, success), SHARE, rarer) if tells else None,
        "rank correlation with the return": over_goals(
            rank_correlation, (scores, returns), CORRELATION, rarer
        ),
        "correlation with words said, given success": over_goals(
            length_bias, (scores, words, success), CORRELATION, rarer
        ),
    }


KAPPA, FALSE = "Cohen's kappa", "false success, % of failures"
"""Names of figures."""
