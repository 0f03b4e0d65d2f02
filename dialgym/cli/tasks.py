"""``dialgym list``, ``check``, ``check-domain``: list the ids, check a task, check a domain."""

import json as json_format
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialgym import registry
from dialgym.cli.common import Set, complain, complete_ids, console, settings, words
from dialgym.errors import one_of
from dialgym.kinds import KINDS
from dialgym.registry import entry_of, make_task

if TYPE_CHECKING:
    from dialgym.testing import CheckResult, CheckSettings


def _stand_in(entry: registry.RegistryEntry) -> str | None:
    """Label of the built-in data that stands in for what an id names, or of missing packages."""
    try:
        return entry.stand_in if entry.row.builtin_scores else None
    except ImportError:  # the message of whatever plays it names the extra
        return "needs an extra"


def _label(entry: registry.RegistryEntry) -> str:
    return f"{entry.id} ({_stand_in(entry)})" if _stand_in(entry) else entry.id


def _figure(entry: registry.RegistryEntry, name: str) -> str:
    value = entry.row.references(_stand_in(entry)).get(name)
    return f"{value:.2f}" if isinstance(value, float) else str(value or "-")


COLUMNS: dict[str, Callable[[registry.RegistryEntry], str]] = {
    "id": _label,
    "task": registry.task_name,
    "views": lambda entry: ",".join(entry.row.views),
    "random": lambda entry: _figure(entry, "random"),
    "expert": lambda entry: _figure(entry, "expert"),
    "policy": lambda entry: _figure(entry, "expert_policy"),
    "tags": lambda entry: ",".join(entry.row.tags),
    "settings": lambda entry: " ".join(f"{k}={v}" for k, v in entry.row.settings.items()),
    "what": lambda entry: entry.row.description,
}
"""Columns of `dialgym list` by name."""
SHOWN = "id,random,expert,what"


def list_ids(
    tag: Annotated[
        str | None,
        typer.Option(
            help="Only those with this tag.",
            autocompletion=lambda: sorted(
                {tag for entry in registry.entries().values() for tag in entry.row.tags}
            ),
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Only those of this task, such as wordle.",
            autocompletion=lambda: sorted(
                {registry.task_name(entry) for entry in registry.entries().values()}
            ),
        ),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help="Only this view: token, utterance or act; by default the first of each task.",
            autocompletion=lambda: list(KINDS),
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="NAME,NAME,...", help=f"Some of {', '.join(COLUMNS)}.")
    ] = SHOWN,
    json: Annotated[
        bool, typer.Option("--json", help="Print the rows of the registry as JSON.")
    ] = False,
) -> None:
    """List the environments, a line each.

    `random` and `expert` are mean returns of the random policy and of the best scripted one.
    (built-in): data that comes with dialgym stands in for the original, which is not here.
    """
    shown = words(columns)
    for name in shown or [columns]:
        one_of("--columns", name, COLUMNS)
    ids = registry.list_ids(tag, task=task, view=view)
    chosen = [registry.entries()[env_id] for env_id in ids]
    if json:
        typer.echo(json_format.dumps([as_dict(entry) for entry in chosen], indent=2))
        return
    firsts = {entry.row.name: entry for entry in reversed(chosen)}  # the first view of each row
    cells = [[COLUMNS[name](entry) for name in shown] for entry in reversed(firsts.values())]
    _print_table([shown, *cells])
    others = sorted({entry.view for entry in chosen if entry not in firsts.values()})
    if others:
        console.print(f"\nOther views of these: --view {' or '.join(others)}.", style="dim")


def _print_table(table: Sequence[Sequence[str]]) -> None:
    """Print rows of cells, the first the head, each cut to the width of a terminal."""
    widths = [max(map(len, column)) for column in zip(*table)]
    room = console.width if console.is_terminal else None
    for number, row in enumerate(table):
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip()
        if room and len(line) > room:
            line = line[: room - 1] + "…"
        console.print(line, style=None if number else "bold", soft_wrap=True)


def as_dict(entry: registry.RegistryEntry) -> dict[str, Any]:
    """An id and its row in plain values."""
    row = entry.row
    return {
        "id": entry.id,
        "view": entry.view,
        "description": row.description,
        "tags": list(row.tags),
        "task": row.task if isinstance(row.task, str) else repr(row.task),
        "settings": dict(row.settings),
        "scores": dict(row.scores),
        "builtin_scores": dict(row.builtin_scores),
    }


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="ID | MODULE:CLASS",
            help="An id, or a task of your own.",
            autocompletion=complete_ids,
        ),
    ],
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", min=1, help="Number of random dialogues.")
    ] = 50,
    set_: Set = None,
    rewards: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Bounds that every reward is to keep to."),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(min=0, help="Difference of two mean returns that the dialogues are to show."),
    ] = None,
    say: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="One of the texts to say to a text environment."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Check a task: rules against facts, views against each other, batch against single, rewards
    of who plays well against their bounds, registered reference scores against played dialogues.

    Then its utterance view, or an environment of others (gymnasium:ID, textarena:ID, openenv:URL,
    verifiers:PACKAGE), is held to what any text environment should keep to: does the seed hold,
    do members of a group start alike, does a reset leave something behind, do sessions share
    state, does an observation tell the secret, are rewards within bounds, do masks leave
    something, and which difference do so many dialogues show.

    The exit code is 1 where a check fails. A remark says where an agent that begins at random
    would find nothing to learn from.
    """
    from dialgym import testing
    from dialgym.bridges.foreign import ForeignTask

    entry = entry_of(target)
    given = settings(set_)
    task = make_task(entry, given)
    bounds = _bounds(rewards) if rewards else None
    texts = tuple(say or ())
    asked = testing.CheckSettings(episodes=episodes, rewards=bounds, gap=gap, texts=texts)
    foreign = isinstance(task, ForeignTask)
    checks = testing.checks(task.environment, asked) if foreign else _own(entry, task, given, asked)
    results: list[testing.CheckResult] = []
    for result in checks:
        results.append(result)
        if not json:
            _print_result(task.name, result)
    report = testing.Report(task.name, tuple(results))
    if json:
        typer.echo(report.as_json())
    if report.faults:
        raise typer.Exit(1)
    if json or foreign:
        return
    if remark := testing.start_remark(task, episodes):
        console.print("!", style="yellow", end=" ")
        console.print(f"{task.name}: {remark}", soft_wrap=True)


def _bounds(text: str) -> tuple[float, float]:
    """The numbers of ``LOW,HIGH``."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if low <= high:
        return low, high
    raise ValueError(f"--rewards: expected LOW,HIGH, such as -1,1; got {text!r}.")


def _own_checks(
    entry: registry.RegistryEntry, task: Any, episodes: int, references: bool
) -> dict[str, Callable[[], None]]:
    """The checks of a task of ours by name; each raises an error where it fails."""
    from dialgym import testing

    expert = entry.row.expert_policy
    checks = {
        "rules agree with facts": lambda: testing.check_task(task, episodes),
        "views agree": lambda: testing.check_views(task, episodes),
        "a batch equals single envs": lambda: testing.check_batch(task, steps=6 * episodes),
        "returns are within bounds": lambda: testing.check_returns(
            task, [expert] if expert else None, episodes
        ),
    }
    if references and entry.row.references(task.stand_in):
        checks["reference scores are true"] = lambda: testing.check_references(entry, episodes)
    return checks


def _own(
    entry: registry.RegistryEntry, task: Any, given: Mapping[str, Any], asked: "CheckSettings"
) -> Iterator["CheckResult"]:
    """Yield the results of a task's checks up to the first fault, then of its utterance view."""
    from dialgym import testing
    from dialgym.testing.conformance import FAIL, PASS

    for name, run in _own_checks(entry, task, asked.episodes, references=not given).items():
        try:
            run()
        except (AssertionError, ValueError) as error:
            yield testing.CheckResult(name, FAIL, str(error))
            return
        yield testing.CheckResult(name, PASS, "")
    yield from testing.checks(testing.utterance_environment(entry, **given), asked)


MARKS = {"pass": ("✓", "green"), "not applicable": ("-", "dim")}


def _print_result(name: str, result: "CheckResult") -> None:
    """Print a line for the result of a check; a fault on the error stream."""
    if result.verdict not in MARKS:
        complain(f"{name}: {result.check}: {result.evidence}")
        return
    mark, style = MARKS[result.verdict]
    console.print(mark, style=style, end=" ")
    evidence = f" ({result.evidence})" if result.evidence else ""
    console.print(f"{name}: {result.check}{evidence}", soft_wrap=True)


def check_domain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH | NAME",
            help="path/to/Bars, for Bars-rules.json and Bars-dbase.db; a YAML file; a folder or "
            "zip of ConvLab's CamRest; or a domain's name.",
        ),
    ],
    shared_names: Annotated[
        bool, typer.Option("--shared-names", help="Several rows may have one name.")
    ] = False,
) -> None:
    """Check the files of a slot-filling domain, and print its size.

    The exit code is 1 where something is wrong with it.
    """

    from dialgym.tasks.slot_filling.domain.domain import find_faults, load_domain, sizes
    from dialgym.tasks.slot_filling.summary_acts import act_names
    from dialgym.tasks.slot_filling.tracker import Layout

    try:
        domain = load_domain(target)
    except ValueError as error:
        complain(str(error))
        raise typer.Exit(1) from error
    figures = {
        **sizes(domain),
        "belief vector": str(Layout(domain.ontology).vector_size),
        "summary acts": str(len(act_names(domain.ontology))),
    }
    width = max(map(len, figures))
    for what, figure in figures.items():
        console.print(f"{what:<{width}}  {figure}", soft_wrap=True)
    faults = find_faults(domain, shared_names)
    for fault in faults:
        complain(fault)
    if faults:
        raise typer.Exit(1)
    console.print("✓", style="green", end=" ")
    console.print(f"{domain.ontology.domain} is sound")
