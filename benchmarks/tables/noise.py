"""Success of the handcrafted policy against the rate of semantic errors: a picture and a table.

    DIALGYM_PYDIAL=FOLDER python -m benchmarks.tables.noise [--out docs/images/noise.png]
                              [--table docs/results/noise.md] [--episodes 2000] [--domains ...]
                              [--policy handcrafted] [--noise set1] [--most 50]

Each curve is a domain, with 95 % intervals (Wilson's). The domains are PyDial's where the variable
names their folder, else the built-in ones of the same sizes, as picture and table then say.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dialgym
from dialgym.experiments.plots import draw_over, new_figure, save_figure, tidy
from dialgym.experiments.statistics import Estimate, format_estimate, wilson
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text
from dialgym.tasks.slot_filling.domain.domain import load_domain

ENV = "dialgym/SlotFilling-act-v0"
DOMAINS = ("CamRestaurants", "SFRestaurants", "Laptops11")
STEP = 10


def shown(share: Estimate) -> str:
    """Format a share with its interval, in per cent."""
    return format_estimate(in_percent(share), 1)


def in_percent(share: Estimate) -> Estimate:
    """A share and its interval, times 100."""
    return Estimate(*(100 * value for value in share))


def success(domain: str, policy: str, noise: str, rate: float, episodes: int) -> Estimate:
    """Share of the dialogues that succeed."""
    kwargs = {"domain": domain, "noise": noise, "error_rate": rate}
    return wilson(dialgym.evaluate(policy, ENV, episodes, (0,), kwargs).success, episodes)


def label(name: str) -> str:
    """Name of a domain: its own, which a built-in one does not share."""
    domain = load_domain(name)
    own = domain.ontology.domain
    return f"{own} (built-in)" if domain.source == "built-in" else own


def table(curves: Mapping[str, Sequence[Estimate]], percents: Sequence[int]) -> str:
    """The figures of the picture."""
    head = ["domain", *(f"{percent} %" for percent in percents)]
    return markdown_table([head, *([name, *map(shown, c)] for name, c in curves.items())])


def draw(curves: Mapping[str, Sequence[Estimate]], percents: Sequence[int]) -> Any:
    """The picture, a figure of matplotlib."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    tidy(axes)
    draw_over(axes, {name: [*map(in_percent, shares)] for name, shares in curves.items()}, percents)
    axes.set_xlabel("semantic error rate, %")
    axes.set_ylabel("success, %")
    axes.legend(frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/noise.png"))
    parser.add_argument("--table", type=Path, help="where to write the figures too")
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--policy", default="handcrafted")
    parser.add_argument("--noise", default="set1")
    parser.add_argument("--most", type=int, default=50, help="highest rate, in %%")
    chosen = parser.parse_args()
    percents = range(0, chosen.most + 1, STEP)
    curves = {
        label(name): [
            success(name, chosen.policy, chosen.noise, percent / 100, chosen.episodes)
            for percent in percents
        ]
        for name in chosen.domains
    }
    text = table(curves, percents)
    print(text)
    if chosen.table:
        write_text(chosen.table, text)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw(curves, percents), chosen.out)
    print(chosen.out)


if __name__ == "__main__":
    main()
