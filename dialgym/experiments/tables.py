"""Results as tables: one row for each environment and policy, raw and normalised."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from dialgym.experiments.statistics import Estimate, format_estimate
from dialgym.registry import NAMESPACE

if TYPE_CHECKING:
    from rich.table import Table

    from dialgym.experiments.result import Episodes, Result

HEAD = ("environment", "policy", "mean return", "IQM", "success", "score", "turns")
ALL = "all"
WIDE = 110
PREFIX = f"{NAMESPACE}/"
Row = tuple[str, ...]


def rows(results: Sequence["Result"]) -> Iterator[Row]:
    """The cells, environment by environment; last those over all, where there are several."""
    places = labels(results)
    for env_id, label in places:
        for result in results:
            if env_id in result.by_id and result.label(env_id) == label:
                yield (label, result.name, *_cells(result.by_id[env_id]))
    if len(places) > 1:
        for result in results:
            if {(env_id, result.label(env_id)) for env_id in result.by_id} == set(places):
                yield (ALL, result.name, *_cells(result.overall))


def labels(results: Sequence["Result"]) -> list[tuple[str, str]]:
    """The ids and what tables call them; an id that was played in two ways has two."""
    pairs = ((env_id, r.label(env_id)) for r in results for env_id in r.by_id)
    return list(dict.fromkeys(pairs))


def markdown(results: Sequence["Result"]) -> str:
    """A Markdown table, and below it what its figures mean."""
    return f"{markdown_table([HEAD, *rows(results)])}\n{caption(*results)}\n"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as Markdown; the first row is the head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def rich_table(results: Sequence["Result"], width: int | None = None) -> "Table":
    """The same for the terminal, a section for each environment; without the turns.

    Where `width`, by default the terminal's, is less than `WIDE`, intervals go below their values.
    """
    import rich
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    wide = (width or rich.get_console().width) >= WIDE
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.caption, table.caption_justify = caption(*results), "left"
    for i, column in enumerate(HEAD[1:-1]):
        kind = {"justify": "right", "no_wrap": True} if i else {"overflow": "fold"}
        table.add_column(column, **kind)
    for env_id, part in groupby(rows(results), key=itemgetter(0)):
        table.add_section()
        table.add_row(f"[bold]{env_id.removeprefix(PREFIX)}[/bold]")
        for _, policy, *cells, _ in part:
            lines = cells if wide else [c.replace(" [", "\n[").replace(", ", ",") for c in cells]
            table.add_row(f"  {escape(policy)}", *map(escape, lines))
    return table


BUILT_IN = (
    " Built-in: the original is not here, and what takes its place has references of its own; "
    "figures on the one do not compare with figures on the other."
)

DRAWS = (
    " Drawn, greedy: a policy that learned by drawing its actions, played so, and taking the "
    "likeliest."
)
ORACLE = " Oracle: a policy that knows what is hidden from its party, which no learner does."


def caption(*results: "Result") -> str:
    """What the figures of a table mean."""
    result = results[0]
    episodes = next(iter(result.by_id.values())).returns.shape[1]
    more = BUILT_IN if any(r.stand_ins for r in results) else ""
    more += DRAWS if any(r.actions for r in results) else ""
    more += ORACLE if any(r.oracle for r in results) else ""
    return (
        f"{episodes} episodes for each of {len(result.seeds)} seeds. In brackets: 95 % stratified "
        "bootstrap interval. IQM: interquartile mean of the returns. Score: 100 (return - random) "
        f"/ (expert - random), on the mean return.{more}"
    )


def _cells(part: "Episodes") -> Row:
    bounds = part.score_interval
    score = None if part.score is None or bounds is None else Estimate(part.score, *bounds)
    return (
        format_estimate(Estimate(part.mean_return, *part.interval), 2),
        format_estimate(Estimate(part.iqm, *part.iqm_interval), 2),
        f"{100 * part.success:.1f} %",
        format_estimate(score, 1),
        f"{part.mean_length:.2f}",
    )
