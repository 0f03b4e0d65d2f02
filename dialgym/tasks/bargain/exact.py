"""Exact facts about a negotiation: Pareto front, solutions of bargaining, measures of a deal."""

from collections.abc import Mapping

import numpy as np


def pareto(system: np.ndarray, user: np.ndarray) -> np.ndarray:
    """(G,) bool: the outcomes than which none is better for one party and as good for the other.

    Args:
        system, user: (G,) points of each outcome for each party.
    """
    no_worse = (system[None] >= system[:, None]) & (user[None] >= user[:, None])
    better = (system[None] > system[:, None]) | (user[None] > user[:, None])
    front: np.ndarray = np.logical_not((no_worse & better).any(1))
    return front


def nash(system: np.ndarray, user: np.ndarray, apart: float = 0.0) -> np.ndarray:
    """The places of the outcomes with the greatest product of gains over `apart`, ascending.

    Where no outcome gives both parties at least `apart`, none. Source: Nash (1950).
    """
    gains = np.minimum(system, user) >= apart
    product = np.where(gains, (system - apart) * (user - apart), -np.inf)
    return np.flatnonzero(gains & (product == product.max()))


def kalai_smorodinsky(system: np.ndarray, user: np.ndarray, apart: float = 0.0) -> np.ndarray:
    """The places of the outcomes whose lesser share of the best possible gain is greatest.

    Gains are over `apart`, the best of a party those of outcomes that give both at least `apart`.
    Among outcomes with the same lesser share those with the greatest other one count. Source: Kalai
    and Smorodinsky (1975), for finitely many outcomes.
    """
    fair = np.minimum(system, user) >= apart
    if not fair.any():
        return np.flatnonzero(fair)
    gains = [np.where(fair, points - apart, -1.0) for points in (system, user)]
    shares = np.stack([gain / gain.max() if gain.max() > 0 else gain * 0.0 for gain in gains])
    lesser = np.where(fair, shares.min(0), -1.0)
    level = lesser == lesser.max()
    greater = np.where(level, shares.max(0), -1.0)
    return np.flatnonzero(level & (greater == greater.max()))


def measures(
    system: np.ndarray, user: np.ndarray, points: tuple[int, int], most: int
) -> Mapping[str, float]:
    """Measures of a deal, from 0 to 1.

    ``points`` and ``other`` are those of system and user, as shares of `most`; ``pareto`` is 1
    where no outcome is better for one and as good for the other; ``joint`` is the sum of points as
    a share of the greatest possible, ``fairness`` the lesser points as a share of the greatest that
    the lesser can be.

    Args:
        system, user: (G,) points of the outcomes that are possible.
        points: of both parties, by the deal.
        most: points that no outcome exceeds.
    """
    no_worse = (system >= points[0]) & (user >= points[1])
    better = (system > points[0]) | (user > points[1])
    lesser = int(np.minimum(system, user).max())
    return {
        "agreed": 1.0,
        "points": points[0] / most,
        "other": points[1] / most,
        "pareto": float(not (no_worse & better).any()),
        "joint": sum(points) / max(int((system + user).max()), 1),
        "fairness": min(points) / lesser if lesser else 1.0,
    }
