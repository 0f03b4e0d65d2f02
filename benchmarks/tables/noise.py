"""Success of the handcrafted policy against the rate of semantic errors: a table and a picture.

    DIALGYM_PYDIAL=FOLDER python -m benchmarks.tables.noise [--out docs/images/noise.png]
                              [--episodes 2000] [--domains ...]
                              [--policy handcrafted] [--noise set1] [--most 50]

Each curve is a domain, with 95 % intervals (Wilson's). The domains are PyDial's where the variable
names their folder, else the built-in ones of the same sizes, as picture and table then say.
"""

import argparse
from pathlib import Path
from typing import Any

import dialgym
from benchmarks.tables.records import RECORDS, Figures, make_record
from dialgym.experiments.plots import draw_over, new_figure, tidy
from dialgym.experiments.statistics import Estimate, format_estimate, wilson
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import save_figure
from dialgym.tasks.slot_filling.domain.domain import load_domain

NAME, COMMAND = "noise", "DIALGYM_PYDIAL=FOLDER python -m benchmarks.tables.noise"
ENV = "dialgym/SlotFilling-act-v0"
DOMAINS = ("CamRestaurants", "SFRestaurants", "Laptops11")
STEP = 10


def shown(share: Estimate) -> str:
    """Format a share with its interval, in per cent."""
    return format_estimate(in_percent(share), 1)


def in_percent(share: Estimate) -> Estimate:
    """A share and its interval, times 100."""
    return Estimate(*(100 * value for value in share))


def success(domain: str, policy: str, noise: str, rate: float, episodes: int) -> int:
    """Number of the dialogues that succeed."""
    kwargs = {"domain": domain, "noise": noise, "error_rate": rate}
    return int(dialgym.evaluate(policy, ENV, episodes, (0,), kwargs).overall.solved.sum())


def label(name: str) -> str:
    """Name of a domain: its own, which a built-in one does not share."""
    domain = load_domain(name)
    own = domain.ontology.domain
    return f"{own} (built-in)" if domain.source == "built-in" else own


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Successes of each domain, by the rate in per cent."""
    percents = range(0, chosen.most + 1, STEP)
    successes = {
        label(name): [
            success(name, chosen.policy, chosen.noise, percent / 100, chosen.episodes)
            for percent in percents
        ]
        for name in chosen.domains
    }
    return {"dialogues": chosen.episodes, "percents": [*percents], "successes": successes}


def curves(figures: Figures) -> dict[str, list[Estimate]]:
    """Shares of success with Wilson's intervals, by domain."""
    dialogues = figures["dialogues"]
    return {
        name: [wilson(count / dialogues, dialogues) for count in counts]
        for name, counts in figures["successes"].items()
    }


def table(figures: Figures) -> str:
    """The figures of the picture."""
    head = ["domain", *(f"{percent} %" for percent in figures["percents"])]
    rows = [[name, *map(shown, shares)] for name, shares in curves(figures).items()]
    return markdown_table([head, *rows])


def draw(figures: Figures) -> Any:
    """The picture, a figure of matplotlib."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    tidy(axes)
    shares = {name: [*map(in_percent, each)] for name, each in curves(figures).items()}
    draw_over(axes, shares, figures["percents"])
    axes.set_xlabel("semantic error rate, %")
    axes.set_ylabel("success, %")
    axes.legend(frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/noise.png"))
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--policy", default="handcrafted")
    parser.add_argument("--noise", default="set1")
    parser.add_argument("--most", type=int, default=50, help="highest rate, in %%")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the record")
    chosen = parser.parse_args()
    figures = make_record(NAME, COMMAND, lambda: measure(chosen), chosen.records)
    print(table(figures))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw(figures), chosen.out)
    print(chosen.out)


if __name__ == "__main__":
    main()
