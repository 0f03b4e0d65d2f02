"""Checking rows of the leaderboard: reading them, playing them again, counting cells that lack.

What goes wrong with one row is that row's problem: the others are checked all the same.
"""

from collections.abc import Iterator, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from dialgym.cli.common import require_agents
from dialgym.experiments.panel import Panel, panel_named


def rows_below(path: Path) -> list[Path]:
    """The files of rows below a folder; a file itself.

    Raises:
        ValueError: there are none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("*-seed*.json"))
    if not found:
        raise ValueError(f"check: expected rows (ID-seedN.json) below {str(path)!r}, got none")
    return found


def read(file: Path) -> Any:
    """The row (`Submission`) in a file, or what is wrong with it, as a text."""
    from dialgym.experiments.row import read_submission

    try:
        return read_submission(file)
    except (ValueError, OSError) as error:
        return str(error)


def expect_models(rows: Sequence[Any]) -> None:
    """Raises ValueError where all rows are scripted: there is none that --model could be for."""
    from dialgym.experiments.row_checks import SCRIPTED

    if rows and all(row.values["kind"] == SCRIPTED for row in rows):
        raise ValueError(
            "--model: expected the row of a model, got scripted rows alone, which say their policy "
            "themselves. Leave --model out."
        )


def problems_of(
    row: Any, placed: bool, replayed: bool, model: Path | None, trust: bool
) -> Iterator[str]:
    """Problems of the rows that `read` gave.

    Args:
        row: of a file, or what is wrong with its form.
        placed: whether the file lies in a folder of rows, where its path tells which it is.
        replayed: whether its model or policy is played again.
        model: where the model lies, if not beside the file.
        trust: whether code of the row may be imported.
    """
    from dialgym.experiments.protocol import model_of, replay
    from dialgym.experiments.row import misplaced

    if isinstance(row, str):
        yield row
        return
    if placed and (wrong := misplaced(row)):
        yield wrong
    if not replayed:
        return
    try:
        yield from replay(row, imported(str(model_of(row, model)), trust), trust)
    except (ValueError, ImportError, OSError) as error:
        yield str(error)
    except Exception as error:  # a policy of one's own raises whatever it does
        yield f"its policy cannot be played: {type(error).__name__}: {error}"


def imported(policy: str, trust: bool) -> Any:
    """An object of ``module:Class`` or ``module:object``; any other policy as it is.

    Raises:
        ValueError: there is no such thing, it is not trusted, or the class needs arguments.
    """
    from dialgym.tasks.lookup import find_object
    from dialgym.trust import distrusted

    if ":" not in policy or Path(policy).exists() or policy.startswith("hf:"):
        return policy
    if not trust:
        raise distrusted(policy, "policy of the row")
    found = find_object(policy, "policy")
    return _made(found, policy) if isinstance(found, type) else found


def _made(kind: type, path: str) -> Any:
    try:
        signature(kind).bind()
    except TypeError as error:
        raise ValueError(
            f"policy {path!r}: expected a class that needs no arguments, or an object; got one "
            f"that does ({error}). Make an object of it in its module, and give that "
            "(module:object)."
        ) from error
    return kind()


def missing(rows: Sequence[Any], folders: Sequence[Path]) -> Iterator[str]:
    """Environments and seeds of panels that the rows of folders lack."""
    found: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for row in rows:
        if any(row.file.is_relative_to(folder) for folder in folders):
            of = row.values["panel"], row.name
            found.setdefault(of, set()).add((row.id, row.seed))
    for (name, row_name), cells in found.items():
        wanted = _wanted(panel_named(name), row_name, len(cells))
        if len(cells) < wanted:
            yield f"{name}/{row_name}: {len(cells)} of {wanted} cells of the panel"


def _wanted(panel: Panel, name: str, there: int) -> int:
    """Cells that `dialgym leaderboard run` has for a row of the name; all, where it knows none."""
    every = len(panel.environments) * panel.seeds
    if there >= every:
        return every
    require_agents()
    from agents.experiments.panel_jobs import jobs_asked_for

    try:
        return jobs_asked_for(panel, [name])
    except ValueError:
        return every
