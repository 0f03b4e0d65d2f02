"""The picture of exact values in the documentation of the car dealer.

python scripts/draw_car_dealer.py [--out docs/images/car_dealer.png]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.experiments.plots import COLOURS, GREY, INK, new_figure, tidy
from dialgym.io.files import save_figure
from dialgym.registry import entry_of, make_task
from dialgym.tasks.bargain.cars import CHEAPEST, DEAREST, LIMITS, NAMES, PRICES

CAR = 1
PLEASED = ("what do you need most?", "let us talk about the brand")
"""Said to a customer who cares about the brand."""
DEALERS = ("best-response", "optimal", "dealer")
RNG = np.random.default_rng(0)  # of nothing: no policy shown draws


def answered(task: Any, state: Any, policy: Any) -> None:
    """Let a policy speak, and the customer answer."""
    for who in (policy, task.speaker_named("user", "customer")):
        if not state.over:
            task.speak(state, who if isinstance(who, str) else who.reply(task, state, RNG), RNG)


def price_values(task: Any, said: tuple[str, ...]) -> np.ndarray:
    """Expected points of each price of a car, after some utterances."""
    state = task.initial(RNG, {"user": [LIMITS[2], CAR, 1]})
    for text in said:
        answered(task, state, text)
    values: np.ndarray = task.action_values(state)[CAR * PRICES : (CAR + 1) * PRICES]
    return values


def mean_points(task: Any, name: str) -> np.ndarray:
    """Mean points of a dealer by the limit of its customers."""
    policy = task.speaker_named("system", name)
    points: dict[int, list[int]] = {limit: [] for limit in LIMITS}
    for options in task.secrets():
        state = task.initial(RNG, options)
        while not state.over:
            answered(task, state, policy)
        points[options["user"][0]].append(task.points(state)[0])
    return np.array([np.mean(earned) for earned in points.values()])


def picture() -> Any:
    """Values of prices, and points by the limit of the customer."""
    task = make_task(entry_of("dialgym/CarDealer-v0"), {})
    figure = new_figure(9.6, 3.4)
    left, right = figure.subplots(1, 2)
    prices, limits = 5 * np.arange(CHEAPEST, DEAREST + 1), 5 * np.array(LIMITS)
    for said, label, colour in (
        ((), "said first", GREY),
        (PLEASED, "to who is pleased", COLOURS[0]),
    ):
        left.plot(prices, price_values(task, said), "o-", markersize=3, color=colour, label=label)
    for name, colour in zip(DEALERS, COLOURS):
        right.plot(limits, mean_points(task, name), "o-", markersize=4, color=colour, label=name)
    right.plot(limits, LIMITS, ":", color=GREY, label="the limit itself")
    left.set_xlabel(f"price of the {NAMES[CAR]}, % of its list price", color=INK)
    right.set_xlabel("limit of the customer, % of the list price", color=INK)
    left.set_ylabel("expected points", color=INK)
    right.set_ylabel("points", color=INK)
    for axes in (left, right):
        tidy(axes)
        axes.legend(frameon=False, fontsize=8.5)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/car_dealer.png"))
    save_figure(picture(), parser.parse_args().out)
