"""Options `--over` and `--plot`, over values of a setting, and `--best`, beside the best one."""

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import settings, words

OVER = Annotated[
    str | None,
    typer.Option(
        metavar="KEY=VALUE,VALUE,...",
        help="Score it at each of these values of a setting of the environment.",
    ),
]
PLOT = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Where to draw the curve over these values.")
]
BEST = Annotated[
    bool,
    typer.Option(
        "--best",
        help="Let the best response to the simulator play the same dialogues, and say how much the "
        "policy is short of it.",
    ),
]
OPTIONS = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("over", None, OVER), ("plot", None, PLOT), ("best", False, BEST)
    )
]  # fmt: skip


def over_values(text: str | None, plot: Path | None) -> tuple[str, list[Any]]:
    """A setting and its values, of ``error_rate=0,0.15,0.3``; one value of none without `text`.

    Raises:
        ValueError: it is no such text; or a picture is asked for without one, or in no format
            that is drawn.
        ImportError: a picture is asked for, and matplotlib is not installed.
    """
    if text is None:
        if plot is not None:
            raise ValueError(
                "--plot: expected --over too, whose values the curve is drawn over, such as "
                "--over error_rate=0,0.15,0.3"
            )
        return "", [None]
    if plot is not None:
        from dialgym.experiments.plots import check_picture

        check_picture(plot)
    name, _, listed = text.partition("=")
    values = [settings([f"{name}={value}"], "--over")[name] for value in words(listed)]
    if not values or len({*map(repr, values)}) < len(values):
        raise ValueError(
            "--over: expected a setting and its values, each once, such as "
            f"error_rate=0,0.15,0.3; got {text!r}."
        )
    return name, values
