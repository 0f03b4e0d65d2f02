"""``dialgym leaderboard``: show and compare the rows of panels, add and check rows."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.benchmark import ROWS, RUNS, PanelName
from dialgym.cli.common import Trust, complain, console, require_agents
from dialgym.cli.evaluate import add
from dialgym.errors import one_of
from dialgym.experiments.panel import Panel, panel_named, panels

KEPT = Path("benchmarks/results")
PASSED = "form, hashes and statistics hold; not played again (--replay)"

leaderboard = typer.Typer(
    no_args_is_help=True, help="Rows of panels: show, compare, add, check; dialgym benchmark plays."
)

Markdown = Annotated[
    Path | None, typer.Option(help="A file to write the tables into, too, as Markdown.")
]
Results = Annotated[
    list[Path] | None,
    typer.Option(
        help=f"Folders of rows, the first counts most; by default {KEPT} and {ROWS}.",
        show_default=False,
    ),
]
Actions = Annotated[
    str | None,
    typer.Option(
        metavar="drawn|greedy",
        help="How all models choose their actions; by default each as it was trained.",
        show_default=False,
    ),
]


@leaderboard.command("show")
def show(
    panel: Annotated[
        str | None,
        typer.Argument(
            metavar="[PANEL]", autocompletion=lambda: list(panels()), show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All panels.")] = False,
    actions: Actions = None,
    results: Results = None,
    markdown: Markdown = None,
) -> None:
    """Show the table of a panel: means with intervals, ranks with ties, costs; or all and a sum."""
    from dialgym.experiments.panel_tables import costs_as_markdown, ranking_as_markdown
    from dialgym.io.files import write_text

    if (panel is None) == (not every):
        raise ValueError(
            f"show: expected either a panel or --all; the panels are {', '.join(panels())}"
        )
    chosen = [panel_named(name) for name in ([panel] if panel else panels())]
    rankings = [rankings_of(one, results, every, actions) for one in chosen]
    for ranking in chain.from_iterable(rankings):
        print_ranking(ranking)
    texts = [ranking_as_markdown(ranking) for ranking in chain.from_iterable(rankings)]
    if every:
        texts.append(costs_as_markdown([costs_of(each, results) for each in rankings]))
        console.print(texts[-1], soft_wrap=True)
    if markdown:
        write_text(markdown, "\n".join(texts))


@leaderboard.command("compare")
def compare(
    panel: PanelName,
    first: Annotated[str, typer.Argument(metavar="A", help="A row.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    actions: Actions = None,
    results: Results = None,
    markdown: Markdown = None,
) -> None:
    """Compare two rows in each environment that both have played."""
    from dialgym.experiments.panel_tables import compare_rows
    from dialgym.io.files import write_text

    ranking, *_ = rankings_of(panel_named(panel), results, actions=actions)
    text = compare_rows(ranking, first, second)
    console.print(text, soft_wrap=True)
    if markdown:
        write_text(markdown, text)


@leaderboard.command("html")
def html(
    panel: PanelName,
    out: Annotated[Path, typer.Option(help="The HTML file.")],
    actions: Actions = None,
    results: Results = None,
) -> None:
    """Write a panel as one page that needs no network: table, profile, curves, origin."""
    from dialgym.experiments.pages import write_ranking

    ranking, *_ = rankings_of(panel_named(panel), results, actions=actions)
    write_ranking(out, ranking)
    console.print(f"wrote {out}", style="dim")


# Reading


def rankings_of(
    panel: Panel, results: list[Path] | None, quiet: bool = False, actions: str | None = None
) -> list[Any]:
    """The rankings of a panel, that of the data that are named first.

    Args:
        panel: of the rows.
        results: folders of rows.
        quiet: a panel may have no rows, or its rows be of the actions of their training alone.
        actions: as of `Ranking.all_of`.
    """
    from dialgym.experiments.pydial_ranking import has_rows, ranking_of_csv
    from dialgym.experiments.ranking import Ranking
    from dialgym.experiments.row import MODEL_ACTIONS
    from dialgym.experiments.row_files import read_rows

    folders = results or [KEPT, ROWS]
    if actions is not None:
        one_of("--actions", actions, MODEL_ACTIONS)
    if panel.imported_from is not None:
        if actions is not None and not quiet:
            raise ValueError(
                f"--actions: panel {panel.name!r} has tables of tests, each played as it was "
                "trained; leave --actions out"
            )
        tables = _tables_of(panel, results)
        if not quiet or (tables and has_rows(panel, tables)):
            return [ranking_of_csv(panel, tables or folders[0] / panel.imported_from)]
    rows = read_rows(folders, panel)
    if not rows and not quiet:
        where = ", ".join(str(folder / panel.name) for folder in folders)
        raise ValueError(
            f"panel {panel.label}: expected rows such as ppo/ID-seed0.json in {where}, got none. "
            f"Make some by `dialgym benchmark {panel.name}`, or say where they are "
            "(--results FOLDER)."
        )
    return Ranking.all_of(panel, rows, actions)


def costs_of(rankings: list[Any], results: list[Path] | None) -> Any:
    """Costs of a panel, and the share of it that is done."""
    from dialgym.experiments.panel_tables import panel_costs
    from dialgym.experiments.pydial_ranking import training_seconds

    panel: Panel = rankings[0].panel
    if panel.imported_from is None:
        require_agents()
        from agents.experiments.panel_jobs import jobs_asked_for

        return panel_costs(rankings, jobs_asked_for(panel), None)
    folder = _tables_of(panel, results)
    return panel_costs(rankings, None, None if folder is None else training_seconds(panel, folder))


def _tables_of(panel: Panel, results: list[Path] | None) -> Path | None:
    """The first folder that is there of those with the tables of a panel's tests."""
    candidates = (folder / str(panel.imported_from) for folder in results or [KEPT, ROWS])
    return next((folder for folder in candidates if folder.is_dir()), None)


def print_ranking(ranking: Any) -> None:
    """Print the table, without some columns where the terminal is narrow; Markdown elsewhere."""
    from dialgym.experiments import panel_tables
    from dialgym.experiments.measure_tables import measures_as_markdown
    from dialgym.experiments.tables import WIDE, rich_table

    if not console.is_terminal or not ranking.rows:
        console.print(panel_tables.ranking_as_markdown(ranking), soft_wrap=True)
    else:
        names = panel_tables.ranking_head(ranking)
        shown = range(len(names)) if console.width >= WIDE + 40 else [0, 1, 2, 4]
        rows = [[cells[i] for i in shown] for cells in panel_tables.ranking_rows(ranking)]
        head, caption = [names[i] for i in shown], panel_tables.ranking_caption(ranking)
        console.print(rich_table(head, {ranking.title: rows}, caption, left=1))
        if ranking.older_rules:
            console.print(ranking.older_rules, style="yellow", soft_wrap=True)
        if measures := measures_as_markdown(ranking):
            console.print(measures, soft_wrap=True)
    if any(row.rows for row in ranking.rows):
        text = f"Can be played again: {panel_tables.describe_replays(ranking)}.\n"
        console.print(text, style="dim", soft_wrap=True)


leaderboard.command("add")(add)


# Checks


@leaderboard.command("check")
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Rows, or folders of some.")
    ],
    replayed: Annotated[
        bool, typer.Option("--replay", help="Play the model or policy again, all episodes.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Where the model of a row lies, if not beside it; the tape of openai:MODEL."
        ),
    ] = None,
    retrained: Annotated[
        bool,
        typer.Option(
            "--retrain",
            help="Train the learner again; its figure must be one that another training may have.",
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of these trainings, which go on from there.")
    ] = RUNS / "retrained",
    trust: Trust = False,
) -> None:
    """Check rows of the leaderboard: form, completeness, hashes, statistics; by --replay all."""
    from dialgym.experiments.row import ExperimentRow
    from dialgym.experiments.row_files import repeated_models
    from dialgym.experiments.rules import older_rules

    read = {file: _read(file) for path in files for file in _files_below(path)}
    alone = {path for path in files if not path.is_dir()}  # wherever they were fetched to
    rows = [row for row in read.values() if isinstance(row, ExperimentRow)]
    if model is not None and rows and all(r.is_scripted and not r.is_served for r in rows):
        raise ValueError(
            "--model: expected the row of a model, got scripted rows alone, which say their policy "
            "themselves. Leave --model out."
        )
    repeated, bad = repeated_models(rows), 0
    for file, row in read.items():
        wrong = [*_problems_of(row, file not in alone, replayed, model, trust)]
        wrong += [repeated[file]] if file in repeated else []
        done = "played again alike" if replayed else PASSED
        if retrained and not wrong:
            wrong, done = _train_again(row, out)
        bad += bool(wrong)
        _print_check(file, row, wrong, done)
    if older := older_rules(row.origin for row in rows):
        console.print(older, style="yellow", soft_wrap=True)
    try:
        for text in missing_cells(rows, [path for path in files if path.is_dir()]):
            console.print(text, style="yellow", soft_wrap=True)
    except ImportError as error:  # all rows have been checked
        console.print(f"cells not counted: {error}", style="yellow", soft_wrap=True)
    if bad:
        raise typer.Exit(2)


def _train_again(row: Any, out: Path) -> tuple[list[str], str]:
    """Problems of a row that is trained again, and how that went."""
    require_agents()
    from agents.experiments.retraining import retrain_row

    try:
        found = retrain_row(row, out)
    except (ValueError, RuntimeError, OSError) as error:
        return [str(error)], ""
    text = f"trained again: {found}"
    return [] if found.is_within else [text], text


def _print_check(file: Path, row: Any, wrong: Sequence[str], done: str) -> None:
    for text in wrong:
        complain(f"{file}: {text}")
    if not wrong:
        mark = "" if row.sealed else "; WITHOUT A CHECKSUM"
        console.print(f"{file}: {done}{mark}", soft_wrap=True)


def _files_below(path: Path) -> list[Path]:
    """The files of rows below a folder; a file itself.

    Raises:
        ValueError: there are none.
    """
    if not path.is_dir():
        return [path]
    below = sorted(path.rglob("*-seed*.json"))
    if not below:
        raise ValueError(f"check: expected rows (ID-seedN.json) below {str(path)!r}, got none")
    return below


def _read(file: Path) -> Any:
    """The row in a file, or its problem as a text."""
    from dialgym.experiments.row_files import read_row

    try:
        return read_row(file)
    except (ValueError, OSError) as error:
        return str(error)


def _problems_of(
    row: Any, placed: bool, replayed: bool, model: Path | None, trust: bool
) -> Iterator[str]:
    """Problems of what `_read` gave; the other rows are checked all the same.

    Args:
        row: of a file, or what is wrong with its form.
        placed: the file lies in a folder of rows, where its path tells which it is.
        replayed: its model or policy is played again.
        model: where the model lies, if not beside the file.
        trust: code of the row may be imported.
    """
    from dialgym.experiments.protocol import replay_row
    from dialgym.experiments.row_files import path_problem

    if isinstance(row, str):
        yield row
        return
    if placed and (wrong := path_problem(row)):
        yield wrong
    if not replayed:
        return
    try:
        yield from replay_row(row, row.find_policy(model), trust)
    except (ValueError, ImportError, OSError) as error:
        yield str(error)
    except Exception as error:  # a policy of your own raises whatever it does
        yield f"its policy cannot be played: {type(error).__name__}: {error}"


def missing_cells(rows: Sequence[Any], folders: Sequence[Path]) -> Iterator[str]:
    """Tell what the rows of folders lack of their panels' environments and seeds."""
    cells_of: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for row in rows:
        if any(row.file.is_relative_to(folder) for folder in folders):
            key = row.values["panel"], row.name
            cells_of.setdefault(key, set()).add((row.id, row.seed))
    for (name, row_name), cells in cells_of.items():
        wanted = _wanted_cells(panel_named(name), row_name, len(cells))
        if len(cells) < wanted:
            yield f"{name}/{row_name}: {len(cells)} of {wanted} cells of the panel"


def _wanted_cells(panel: Panel, name: str, there: int) -> int:
    """Cells that `dialgym benchmark` has for a row of the name; all, where it knows none."""
    every = len(panel.environments) * panel.seeds
    if there >= every:
        return every
    require_agents()
    from agents.experiments.panel_jobs import jobs_asked_for

    try:
        return jobs_asked_for(panel, [name])
    except ValueError:
        return every
