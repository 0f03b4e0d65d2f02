"""Success of the handcrafted policy against the rate of semantic errors, as a picture.

    python scripts/noise_curve.py [--out runs/noise.png] [--episodes 500] [--domains ...]
                                  [--policy handcrafted] [--noise set1] [--most 50]

Each curve is a domain, with its 95 % interval; the domains are PyDial's where $DIALGYM_PYDIAL names
their folder, else the built-in ones of the same sizes, as the picture's legend says.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import dialgym
from dialgym.benchmark.plots import AGENTS, FAINT
from dialgym.files import write_atomically
from dialgym.optional import require
from dialgym.tasks.slot_filling.domains import load_domain

DOMAINS = ("CamRestaurants", "SFRestaurants", "Laptops11")
STEP = 10


def successes(
    domain: str, policy: str, noise: str, rates: Sequence[float], episodes: int
) -> np.ndarray:
    """(rates,) the share of dialogues that succeed."""
    env_id, found = "dialgym/SlotFilling-act-v0", []
    for rate in rates:
        kwargs = {"domain": domain, "noise": noise, "error_rate": rate}
        result = dialgym.evaluate(policy, env_id, episodes, (0,), env_kwargs=kwargs)
        found.append(result.by_id[env_id].success)
    return np.array(found)


def draw(curves: dict[str, np.ndarray], rates: Sequence[float], episodes: int, path: Path) -> None:
    """Write the picture."""
    figure = require("matplotlib.figure", "ui", "drawing pictures").Figure(
        (6.4, 4.0), layout="constrained"
    )
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    for (name, share), colour in zip(curves.items(), AGENTS * len(curves)):
        half = 1.96 * np.sqrt(share * (1 - share) / episodes)
        x = 100 * np.array(rates)
        axes.errorbar(x, 100 * share, 100 * half, color=colour, capsize=2, marker="o", label=name)
    axes.set_xlabel("semantic error rate, %")
    axes.set_ylabel("success, %")
    axes.set_ylim(top=100)
    axes.legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=160))


def label(name: str) -> str:
    """What the legend calls a domain: its own name, which a built-in one does not share."""
    domain = load_domain(name)
    own = domain.ontology.domain
    return f"{own} (built-in)" if domain.source == "built-in" else own


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/noise.png"))
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--policy", default="handcrafted")
    parser.add_argument("--noise", default="set1")
    parser.add_argument("--most", type=int, default=50, help="highest rate, in %%")
    chosen = parser.parse_args()
    rates = [percent / 100 for percent in range(0, chosen.most + 1, STEP)]
    curves = {}
    for name in chosen.domains:
        share = successes(name, chosen.policy, chosen.noise, rates, chosen.episodes)
        curves[label(name)] = share
        print(label(name), *(f"{100 * value:.1f}" for value in share), flush=True)
    draw(curves, rates, chosen.episodes, chosen.out)
    print(chosen.out)


if __name__ == "__main__":
    main()
