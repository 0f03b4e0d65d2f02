"""Tables of the leaderboard in the terminal: from folders of rows to what is shown of them."""

from pathlib import Path
from typing import Any

from dialgym.cli.common import console, require_agents
from dialgym.errors import one_of
from dialgym.experiments.panel import Panel

OUT = Path("runs/leaderboard")
KEPT = Path("benchmarks/results")


def boards_of(
    panel: Panel, results: list[Path] | None, quiet: bool = False, way: str | None = None
) -> list[Any]:
    """The tables of a panel: that of the data that are named first; `way` as of `Board.all_of`."""
    from dialgym.experiments.pydial_rows import joined_board
    from dialgym.experiments.ranking import Board
    from dialgym.experiments.row import read_rows
    from dialgym.experiments.row_checks import WAYS

    folders = results or [KEPT, OUT]
    if way is not None:
        one_of("--way", way, WAYS[:2])
    if panel.joined is not None:
        if way is not None and not quiet:
            raise ValueError(
                f"--way: panel {panel.name!r} takes over the rows of another command, each played "
                "as it was trained; leave --way out"
            )
        found = _joined_folder(panel.joined, results)
        if found or not quiet:
            return [joined_board(panel, found or folders[0] / panel.joined)]
    rows = read_rows(folders, panel)
    if not rows and not quiet:
        where = ", ".join(str(folder / panel.name) for folder in folders)
        raise ValueError(
            f"panel {panel.label}: expected rows such as ppo/ID-seed0.json in {where}, got none. "
            f"Make some by `dialgym leaderboard run {panel.name}`, or say where they are "
            "(--results FOLDER)."
        )
    return Board.all_of(panel, rows, way)


def total(boards: list[Any], results: list[Path] | None) -> Any:
    """Print how much of a panel is done, and its cost."""
    from dialgym.experiments.pydial_rows import cpu_seconds_of
    from dialgym.experiments.totals import total_of

    panel: Panel = boards[0].panel
    if panel.joined is None:
        require_agents()
        from agents.experiments.panel_jobs import jobs_asked_for

        return total_of(boards, jobs_asked_for(panel), None)
    folder = _joined_folder(panel.joined, results)
    return total_of(boards, None, None if folder is None else cpu_seconds_of(folder))


def _joined_folder(name: str, results: list[Path] | None) -> Path | None:
    """The first that is there of those that another command keeps its figures in."""
    found = (folder / name for folder in results or [KEPT, OUT])
    return next((folder for folder in found if folder.is_dir()), None)


def print_board(board: Any) -> None:
    """The table, without some columns where the terminal is narrow; Markdown elsewhere."""
    from dialgym.experiments.measure_tables import measures_as_markdown
    from dialgym.experiments.panel_tables import as_markdown, caption, head, table
    from dialgym.experiments.tables import WIDE, rich_table

    if not console.is_terminal or not board.rows:
        console.print(as_markdown(board), markup=False, soft_wrap=True)
        _print_replays(board)
        return
    names = head(board)
    shown = range(len(names)) if console.width >= WIDE + 40 else [0, 1, 2, 4]
    rows = [[cells[i] for i in shown] for cells in table(board)]
    console.print(
        rich_table([names[i] for i in shown], {board.title: rows}, caption(board), left=1)
    )
    if board.older_rules:
        console.print(board.older_rules, style="yellow", markup=False, soft_wrap=True)
    if measures := measures_as_markdown(board):
        console.print(measures, markup=False, soft_wrap=True)
    _print_replays(board)


def _print_replays(board: Any) -> None:
    from dialgym.experiments.panel_tables import replays

    if any(row.rows for row in board.rows):
        text = f"Can be played again: {replays(board)}.\n"
        console.print(text, style="dim", markup=False, soft_wrap=True)
