"""``dialgym leaderboard``: run panels, show and compare their rows, add and check one's own."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.benchmark_pydial import check_failures, grid_progress, parse_seeds
from dialgym.cli.boards import KEPT, OUT, boards_of, print_board, total
from dialgym.cli.common import (
    Ray,
    Trust,
    Workers,
    complain,
    console,
    require_agents,
    resumable,
    words,
)
from dialgym.cli.rows import expect_models, imported, missing, problems_of, read, rows_below
from dialgym.experiments.panel import Panel, Place, panel_named, panels

leaderboard = typer.Typer(
    no_args_is_help=True, help="Panels of environments: run, show, compare, add, check."
)


def complete_panels() -> list[str]:
    """Names of panels, for completion."""
    return list(panels())


PanelName = Annotated[
    str,
    typer.Argument(
        metavar="PANEL",
        autocompletion=complete_panels,
        help="Its name; wordle@0.1 is wordle with a tenth of the budgets, and has its own rows.",
    ),
]
Markdown = Annotated[
    Path | None, typer.Option(help="A file to write the tables into, too, as Markdown.")
]
Results = Annotated[
    list[Path] | None,
    typer.Option(
        help=f"Folders of rows, the first counts most; by default {KEPT} and {OUT}.",
        show_default=False,
    ),
]
Way = Annotated[
    str | None,
    typer.Option(
        metavar="drawn|greedy",
        help="How all models play; by default each as it was trained.",
        show_default=False,
    ),
]
Envs = Annotated[
    str | None,
    typer.Option(metavar="ID,ID,...", help="Environments of the panel; all by default."),
]
Out = Annotated[Path, typer.Option(help="Folder of the runs and rows, which go on from there.")]


@leaderboard.command("run")
def run(
    panel: PanelName,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Learners and reference policies of the panel, or algorithms; all of the panel "
            "by default.",
            show_default=False,
        ),
    ] = None,
    envs: Envs = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="How many, from 0; or which: 0,1,2 or 3-5.")
    ] = None,
    workers: Workers = 1,
    ray: Ray = None,
    out: Out = OUT,
) -> None:
    """Train and score learners by a panel's protocol: a file for each environment and seed.

    What has been done is not done again; killed at any moment, the same command goes on.
    """
    require_agents()
    from agents.experiments.panel_jobs import jobs_of
    from agents.experiments.run import run_jobs

    chosen = panel_named(panel)
    names = words(algorithms or "") or [*chosen.references, *chosen.algorithms]
    places = _places(chosen, envs)
    jobs = jobs_of(chosen, names, places, parse_seeds(seeds or str(chosen.seeds)), out)
    with resumable(), grid_progress("timesteps") as report:
        _, failures = run_jobs(jobs, workers, ray, report)
    where = out / chosen.name
    hint = f"rows in {where}: dialgym leaderboard show {panel} --results {out}"
    console.print(hint, style="dim", soft_wrap=True)
    check_failures(failures)


@leaderboard.command("show")
def show(
    panel: Annotated[
        str | None,
        typer.Argument(metavar="[PANEL]", autocompletion=complete_panels, show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All panels.")] = False,
    way: Way = None,
    results: Results = None,
    markdown: Markdown = None,
) -> None:
    """Show the table of a panel: means with intervals, ranks with ties, costs; or all and a sum."""
    from dialgym.experiments.panel_tables import as_markdown
    from dialgym.experiments.totals import as_markdown as totals_as_markdown
    from dialgym.io.files import write_text

    if (panel is None) == (not every):
        raise ValueError(
            f"show: expected either a panel or --all; the panels are {', '.join(panels())}"
        )
    chosen = [panel_named(name) for name in ([panel] if panel else panels())]
    boards = [boards_of(one, results, every, way) for one in chosen]
    for board in chain.from_iterable(boards):
        print_board(board)
    texts = [as_markdown(board) for board in chain.from_iterable(boards)]
    if every:
        texts.append(totals_as_markdown([total(of, results) for of in boards]))
        console.print(texts[-1], markup=False, soft_wrap=True)
    if markdown:
        write_text(markdown, "\n".join(texts))


@leaderboard.command("compare")
def compare(
    panel: PanelName,
    first: Annotated[str, typer.Argument(metavar="A", help="A row.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    way: Way = None,
    results: Results = None,
    markdown: Markdown = None,
) -> None:
    """Compare two rows in each environment that both have played."""
    from dialgym.experiments.panel_tables import compare as compared
    from dialgym.io.files import write_text

    text = compared(boards_of(panel_named(panel), results, way=way)[0], first, second)
    console.print(text, markup=False, soft_wrap=True)
    if markdown:
        write_text(markdown, text)


@leaderboard.command("html")
def html(
    panel: PanelName,
    out: Annotated[Path, typer.Option(help="The HTML file.")],
    way: Way = None,
    results: Results = None,
) -> None:
    """Write a panel as one page that needs no network: table, profile, curves, origin."""
    from dialgym.experiments.panel_tables import write_page

    write_page(out, boards_of(panel_named(panel), results, way=way)[0])
    console.print(f"wrote {out}", style="dim")


@leaderboard.command("add")
def add(
    panel: PanelName,
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY...",
            help="Runs or checkpoints, one for each seed; or a registered policy, or MODULE:CLASS.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What the table calls it.")] = None,
    envs: Envs = None,
    seeds: Annotated[
        str, typer.Option(metavar="N", help="Of a policy that is not trained: how many, or which.")
    ] = "1",
    out: Out = OUT,
    trust: Trust = False,
) -> None:
    """Score a model or policy of your own by a panel's protocol: it joins the table."""
    from dialgym.experiments.protocol import score
    from dialgym.experiments.row_checks import check_name
    from dialgym.rollouts.policies import find_checkpoint, policy_name

    chosen = panel_named(panel)
    default = policy_name(policies[0]).replace(":", ".")
    called = check_name(default if name is None else name, "--name")
    models = [find_checkpoint(policy) is not None for policy in policies]
    if not all(models) and (any(models) or len(policies) > 1):
        raise ValueError(
            "add: expected checkpoints, one for each seed, or one policy; got "
            f"{', '.join(policies)}"
        )
    work: list[tuple[Any, Place, int, str]] = []
    if all(models):
        work = _trainings(chosen, policies, trust)
    else:
        own: Any = imported(policies[0], True)
        work = [
            (own, place, seed, "scripted")
            for seed in parse_seeds(seeds)
            for place in _places(chosen, envs)
        ]
    for policy, place, seed, way in work:
        told = policy if isinstance(policy, str) else policies[0]
        file = score(chosen, place, policy, called, seed, out, way, trust, told)
        console.print(f"wrote {file}", style="dim", soft_wrap=True)
    console.print(f"dialgym leaderboard show {panel} --results {out}", style="dim", soft_wrap=True)


@leaderboard.command("check")
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Rows, or folders of some.")
    ],
    replayed: Annotated[
        bool, typer.Option("--replay", help="Play the model or policy again, all episodes.")
    ] = False,
    model: Annotated[
        Path | None, typer.Option(help="Where the model of a row lies, if not beside it.")
    ] = None,
    trust: Trust = False,
) -> None:
    """Check rows of the leaderboard: form, completeness, hashes, statistics; by --replay all."""
    from dialgym.experiments.row import Submission, repeated
    from dialgym.experiments.rules import older_rules

    found = {file: read(file) for path in files for file in rows_below(path)}
    alone = {path for path in files if not path.is_dir()}  # wherever they were fetched to
    whole = [row for row in found.values() if isinstance(row, Submission)]
    if model is not None:
        expect_models(whole)
    wrong_together = repeated(whole)
    bad = 0
    for file, row in found.items():
        wrong = [*problems_of(row, file not in alone, replayed, model, trust)]
        wrong += [wrong_together[file]] if file in wrong_together else []
        for text in wrong:
            complain(f"{file}: {text}")
        bad += bool(wrong)
        if not wrong:
            how = "played again alike" if replayed else (
                "form, hashes and statistics hold; not played again (--replay)"
            )  # fmt: skip
            mark = "" if row.sealed else "; WITHOUT A CHECKSUM"
            console.print(f"{file}: {how}{mark}", markup=False, soft_wrap=True)
    if older := older_rules(row.origin for row in whole):
        console.print(older, style="yellow", markup=False, soft_wrap=True)
    try:
        for text in missing(whole, [path for path in files if path.is_dir()]):
            console.print(text, style="yellow", markup=False, soft_wrap=True)
    except ImportError as error:  # all rows have been checked
        console.print(f"cells not counted: {error}", style="yellow", markup=False, soft_wrap=True)
    if bad:
        raise typer.Exit(2)


# What they share


def _places(panel: Panel, envs: str | None) -> list[Place]:
    return [panel.place(name) for name in words(envs)] if envs else list(panel.environments)


def _trainings(
    panel: Panel, policies: Sequence[str], trust: bool
) -> list[tuple[Any, Place, int, str]]:
    """Models with their environments, seeds and ways; those of an environment are seeds 0, 1, 2.

    Raises:
        ValueError: two are the same, or one was not trained as the panel says.
    """
    from dialgym.io.checksums import checksum
    from dialgym.rollouts.policies import find_checkpoint

    found: list[tuple[Any, Place, int, str]] = []
    known: dict[str, str] = {}
    for policy in policies:
        digits = checksum(find_checkpoint(policy) or Path(policy))
        if digits in known:
            raise ValueError(
                f"add: expected checkpoints of different trainings, got one as {known[digits]} and "
                f"as {policy}: one training counts once. Leave one out."
            )
        known[digits] = policy
        place, way = _trained_in(panel, policy, trust)
        seed = sum(1 for _, other, _, _ in found if other.id == place.id)
        found.append((policy, place, seed, way))
    return found


def _trained_in(panel: Panel, policy: str, trust: bool) -> tuple[Place, str]:
    """The environment of a model, and how it was trained to be played."""
    from dialgym.experiments.protocol import way_of
    from dialgym.rollouts.player import opened_where_trained

    opened, entry, settings = opened_where_trained(policy, trust)
    place = panel.place(entry.id)
    if dict(settings) != dict(place.settings):
        raise ValueError(
            f"{policy} was trained with the settings {settings}; the panel {panel.label} plays "
            f"{place.short} with {dict(place.settings)}"
        )
    return place, way_of(opened)
