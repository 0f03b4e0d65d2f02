"""``dialgym report``: a page about a training run, to look at in a browser."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.benchmark import RUNS, default_policies, newest_run, readable_curves
from dialgym.cli.common import Seeds, Trust, console, numbers, progress
from dialgym.io.files import read_json

FACTS = (
    *("env_id", "stand_in", "env_kwargs", "algorithm", "policy", "parameters", "device"),
    *("total_timesteps", "dialogues", "seed", "data", "learned", "seconds", "command"),
)
"""Entries of `run.json`, and of the configuration in it, that are shown of a run."""


def complete_runs() -> list[str]:
    """Folders of finished runs, for completion."""
    return [str(path.parent) for path in sorted(RUNS.glob("*/model.zip"))]


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN...]",
            help=f"Folders of runs in one environment; by default the newest in {RUNS}/.",
            show_default=False,
            autocompletion=complete_runs,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; by default report.html in the first run.")
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", min=1, help="Episodes for each seed.")
    ] = 100,
    seeds: Seeds = "0",
    games: Annotated[int, typer.Option(min=0, help="Dialogues to show.")] = 3,
    trust: Trust = False,
) -> None:
    """Write a page about a run: settings, learning curve, scores, dialogues beside other policies'.

    It is one file, which needs no network. The run's model plays beside a random policy and the
    best scripted one.
    """
    folders = runs or [_newest()]
    from dialgym.experiments import benchmark
    from dialgym.experiments.pages import plain_facts, write_report

    entry, settings, models = _where_trained(folders, trust)
    names = _names(folders)
    policies: dict[str, Any] = {name: name for name in default_policies([entry.id])}
    policies |= dict(zip(names, models))
    chosen = numbers(seeds)
    with progress("episodes", len(policies) * len(chosen) * episodes) as advance:
        found = benchmark(
            policies,
            [entry],
            episodes,
            chosen,
            settings,
            games=games,
            curves=readable_curves(folders),
            trust=trust,
            report=advance,
        )
    record = _record(folders[0]) if len(folders) == 1 else {}
    title = f"{', '.join(names)} in {entry.id.rpartition('/')[2]}"
    target = out or folders[0] / "report.html"
    chosen_before = record.get("hyperparameters") or {}
    facts, parameters = plain_facts(record, FACTS), plain_facts(chosen_before, chosen_before)
    write_report(target, found, title, facts, parameters)
    console.print(f"open {target}", markup=False, soft_wrap=True)


def _newest() -> Path:
    found = newest_run(RUNS)
    if found is None:
        raise FileNotFoundError(
            f"report: there is no run in {RUNS}/ here. Name the folder of one, or train one with "
            "`dialgym train ppo Wordle-20-v0`."
        )
    return found


def _where_trained(folders: list[Path], trust: bool) -> tuple[Any, dict[str, Any], list[Any]]:
    """The environment of runs, its settings, and their models."""
    from dialgym.rollouts.player import opened_where_trained

    found = [opened_where_trained(folder, trust) for folder in folders]
    places = [(entry.id, settings) for _, entry, settings in found]
    for folder, place in zip(folders, places):
        if place != places[0]:
            raise ValueError(
                f"report: expected runs in one environment; got {folders[0]} in {places[0]} and "
                f"{folder} in {place}. Write a report of each."
            )
    return found[0][1], found[0][2], [model for model, _, _ in found]


def _names(folders: list[Path]) -> list[str]:
    names = [folder.resolve().name for folder in folders]
    return names if len({*names}) == len(names) else [str(folder) for folder in folders]


def _record(folder: Path) -> dict[str, Any]:
    """The entries of `run.json`, those of the configuration beside the others."""
    try:
        found = read_json(folder / "run.json", "a run")
    except FileNotFoundError:
        return {}
    return {**found.get("config", {}), **found} if isinstance(found, dict) else {}
