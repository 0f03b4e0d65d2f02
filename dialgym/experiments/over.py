"""Results of a policy over the values of a setting: a table and curves."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialgym.experiments.plots import INK, add_legend, draw_over, new_figure, tidy
from dialgym.experiments.result import PREFIX, Episodes, Result, results_as_table
from dialgym.experiments.statistics import Estimate, wilson
from dialgym.io.checksums import write_json_checked
from dialgym.io.files import save_figure

if TYPE_CHECKING:
    from rich.table import Table


def over_as_table(results: Sequence[Result], setting: str, width: int | None = None) -> "Table":
    """A table for the terminal, with a row for each value of a setting of `Result.env_kwargs`."""
    named = [replace(r, policy=f"{r.policy}, {setting}={r.env_kwargs[setting]}") for r in results]
    return results_as_table(named, width)


def curves_over(
    results: Sequence[Result], setting: str
) -> dict[tuple[str, str], list[tuple[Any, Episodes]]]:
    """By label of the environment and name of the policy: the values, and the episodes at each."""
    curves: dict[tuple[str, str], list[tuple[Any, Episodes]]] = {}
    for result in results:
        for env_id, part in result.by_id.items():
            key = result.label(env_id).removeprefix(PREFIX), result.name
            curves.setdefault(key, []).append((result.env_kwargs[setting], part))
    return curves


def plot_over(results: Sequence[Result], setting: str, path: Path) -> None:
    """Draw success and mean return, with 95 % intervals, over the values of a setting.

    Raises:
        ImportError: matplotlib is not installed.
    """
    curves = curves_over(results, setting)
    values = list(dict.fromkeys(result.env_kwargs[setting] for result in results))
    several = len({label for label, _ in curves}) > 1
    names = {key: ", ".join(key) if several else key[1] for key in curves}
    figure = new_figure(8.4, 3.6)
    left, right = figure.subplots(1, 2)
    draw_over(left, {names[k]: [_success(p) for _, p in c] for k, c in curves.items()}, values)
    draw_over(right, {names[k]: [_mean(p) for _, p in c] for k, c in curves.items()}, values)
    for axes, what in ((left, "success, %"), (right, "mean return")):
        tidy(axes)
        axes.set_xlabel(setting.replace("_", " "), color=INK)
        axes.set_ylabel(what)
    add_legend(figure, 2, dict(zip(names.values(), left.containers, strict=True)))
    save_figure(figure, path)


def _success(part: Episodes) -> Estimate:
    share = wilson(part.success, part.solved.size)
    return Estimate(*(100 * value for value in share))


def _mean(part: Episodes) -> Estimate:
    return Estimate(part.mean_return, *part.interval)


def write_over(
    results: Sequence[Result], setting: str, json: Path | None, plot: Path | None
) -> None:
    """Write the results as `dialgym.experiments.load_results` reads them, and the curves."""
    if json:
        write_json_checked(json, {"results": [result.as_dict() for result in results]})
    if plot:
        plot.parent.mkdir(parents=True, exist_ok=True)
        plot_over(results, setting, plot)
