"""Speed of environments, policies and rewards: ``python -m benchmarks.environments``.

Rates are per CPU-second of one process, the median of repeated runs, each beside a reference of the
same run, so that figures from different machines can be compared.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.environments import multiwoz, questions
from benchmarks.environments.dialogues import (
    ROWS,
    batched_dialogues,
    dialogue_label,
    evaluated_dialogues,
    single_dialogues,
)
from benchmarks.environments.families import family_figures
from benchmarks.environments.replies import ROWS as REPLY_ROWS
from benchmarks.environments.replies import UNSCORED, batched_replies
from benchmarks.environments.rewards import reward_figures
from benchmarks.environments.scripted import bargain_figures, desk_figures
from benchmarks.environments.timing import (
    REPEATS,
    SECONDS,
    Figure,
    cost,
    machine,
    print_machine,
    rate,
)
from benchmarks.environments.workloads import (
    BATCH,
    Rate,
    Settings,
    Work,
    batched_tokens,
    batched_turns,
    cartpole,
    games,
    single_tokens,
    single_turns,
)
from dialgym.errors import one_of
from dialgym.io.checksums import write_json_checked
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.policies import OptimalWordle

MODES = {"consistent": "consistent", "all": "any word"}
DIALOGUES = {"CamRestaurants-Env1": (400, 1500), "SFRestaurants-Env6": (None, 500)}
"""Rows of the registry, and what the project asks of one dialogue and of a batch."""
PARTS = (
    "steps",
    "policy",
    "guesses",
    "imports",
    "dialogues",
    "rewards",
    "replies",
    "multiwoz",
    "questions",
    "visual",
    "bargain",
    "desk",
    "families",
)


def step_figures(settings: Settings, measure: Rate) -> Iterator[Figure]:
    """Turns and token steps, single and batched, beside CartPole's steps."""
    cart = Figure("CartPole-v1, gym.make", measure(cartpole()), "/s")
    yield cart
    turns = measure(single_turns(settings))
    single = Figure("utterance turns, gym.make", turns, "/s", 20_000, cart, "CartPole")
    yield single
    turns = measure(batched_turns(settings))
    yield Figure(f"utterance turns, batch of {BATCH:,}", turns, "/s", 150_000, single, "single")
    steps = measure(single_tokens(settings))
    single = Figure("token steps, gym.make", steps, "/s", 100_000, cart, "CartPole")
    yield single
    steps = measure(single_tokens(settings, True))
    yield Figure("  with masks", steps, "/s", None, single, "without")
    steps = measure(batched_tokens(settings))
    batched = Figure(f"token steps, batch of {BATCH:,}", steps, "/s", 1_000_000, single, "single")
    yield batched
    steps = measure(batched_tokens(settings, True))
    yield Figure("  with masks", steps, "/s", 400_000, batched, "without")


def policy_figures(settings: Settings, measure: Rate, repeats: int) -> Iterator[Figure]:
    """Pattern table, decisions and games of the optimal policy."""
    with fresh_cache():
        task = Wordle(**settings)
        size = f"{len(task.guesses):,} x {len(task.answers):,}"
        compute = Figure(f"pattern table, {size}", cost(lambda: task.table, 1), "s", 10)
        yield compute
        loaded = cost(lambda: Wordle(**settings).table, repeats)
        yield Figure("  cached", loaded, "s", None, compute, "computed")
        task.table.sum()  # the first look at a mapped file reads it from the disk
        everything = np.arange(len(task.answers))
        for guesses, name in MODES.items():
            spent = cost(lambda: OptimalWordle(guesses).best_rows(task, everything), repeats)  # noqa: B023
            yield Figure(f"first guess, {name}", spent, "s", 0.5)
        yield Figure("games of optimal", measure(lambda: len(games(settings))), "/s", 500)


def dialogue_figures(measure: Rate) -> Iterator[Figure]:
    """Dialogues of slot filling that the handcrafted policy holds in the act view."""
    for name, (alone, together) in DIALOGUES.items():
        label = dialogue_label(name)
        single = Figure(f"{label}, gym.make", measure(single_dialogues(name)), "/s", alone)
        yield single
        rate = measure(batched_dialogues(name, arrays=False))
        loop = Figure(f"  batch of {ROWS}, row by row", rate, "/s", None, single, "single")
        yield loop
        rate = measure(batched_dialogues(name))
        batch = Figure(f"  batch of {ROWS}", rate, "/s", together, loop, "row by row")
        yield batch
        rate = measure(evaluated_dialogues(name))
        yield Figure("  dialgym.evaluate, acts at random", rate, "/s", None, batch, "handcrafted")


def reply_figures(settings: Settings, measure: Rate) -> Iterator[Figure]:
    """Token steps of everyday dialogues with their own rewards, beside those without."""
    steps = measure(batched_replies({**settings, **UNSCORED}))
    bare = Figure(f"replies in tokens, batch of {REPLY_ROWS}", steps, "/s")
    yield bare
    steps = measure(batched_replies(settings, loop=True))
    loop = Figure("  their own rewards, row by row", steps, "/s", None, bare, "length")
    yield loop
    steps = measure(batched_replies(settings))
    yield Figure("  their own rewards", steps, "/s", 5_000, loop, "row by row")


def multiwoz_figures(measure: Rate) -> Iterator[Figure]:
    """Queries, goals and dialogues of MultiWOZ, in the city of `$DIALGYM_MULTIWOZ` if it is set."""
    world = load_world()
    scan = Figure("MultiWOZ: queries, row by row", measure(multiwoz.queries(world, True)), "/s")
    yield scan
    indexed = measure(multiwoz.queries(world))
    yield Figure("  indexed", indexed, "/s", 200_000, scan, "row by row")
    yield Figure("  goals drawn", measure(multiwoz.goals(world)), "/s", 6_700)
    held = measure(multiwoz.dialogues(world))
    yield Figure("  dialogues, rule and agenda", held, "/s", 1_000)
    bare = Figure("  turns of the act view", measure(multiwoz.act_turns(False)), "/s", 5_000)
    yield bare
    told = measure(multiwoz.act_turns(True))
    yield Figure("  with texts in infos", told, "/s", 5_000, bare, "without")


def question_figures(measure: Rate) -> Iterator[Figure]:
    """Turns of twenty questions, single and batched, and of the greedy questioner."""
    single = Figure("twenty questions, gym.make", measure(questions.single_questions()), "/s")
    yield single
    turns = measure(questions.batched_questions())
    yield Figure(f"  batch of {BATCH:,}", turns, "/s", 50_000, single, "single")
    yield Figure("  greedy, exact beliefs", measure(questions.greedy_questions()), "/s", None)


def visual_figures(measure: Rate) -> Iterator[Figure]:
    """Questions about 1,000 generated scenes, answered by rules and ranked by the exact guesser."""
    single = Figure(
        "visual dialogue: questions", measure(questions.visual_questions()), "/s", 5_000
    )
    yield single
    together = measure(questions.batched_visual_questions())
    yield Figure(f"  batch of {questions.ROWS}", together, "/s", 5_000, single, "single")
    greedy = measure(questions.greedy_visual_questions())
    yield Figure("  of the greedy questioner", greedy, "/s", None, single, "random")


def taught_figures(measure: Rate) -> Iterator[Figure]:
    """Scores of rewards, whose classifiers are taught for the occasion."""
    with fresh_cache():
        yield from reward_figures(measure)


def guess_figures(lists: Mapping[str, Settings], repeats: int) -> Iterator[Figure]:
    """Mean guesses over all answers of each list, ties broken in `repeats` ways."""
    for name, settings in lists.items():
        bar = 3.65 if name != "built-in" else None
        for mode in MODES:
            runs = [mean(games(settings, mode, seed)) for seed in range(repeats)]
            what = f"mean guesses, {name}, {MODES[mode]}"
            yield Figure(what, mean(runs), "", bar if mode == "consistent" else None)


def import_figures(repeats: int) -> Iterator[Figure]:
    """CPU-seconds of an import in a fresh process."""
    base = Figure("import gymnasium", median(_import("gymnasium", repeats)), "s")
    yield base
    yield Figure("import dialgym", median(_import("dialgym", repeats)), "s", 0.6, base, "Gymnasium")


def _import(module: str, repeats: int) -> list[float]:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    command = [sys.executable, "-c", code]
    return [float(subprocess.check_output(command, text=True)) for _ in range(repeats)]


@contextmanager
def fresh_cache() -> Iterator[None]:
    """An empty cache of tables for the time being."""
    before = os.environ.get("DIALGYM_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DIALGYM_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["DIALGYM_CACHE"]
            if before is not None:
                os.environ["DIALGYM_CACHE"] = before


def show(figures: list[Figure]) -> None:
    """Print a table."""
    from rich import print
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("what", no_wrap=True)
    for column in ("figure", "bar"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("ratio", no_wrap=True)
    for figure in figures:
        mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: " "}[figure.holds]
        least = "≥" if figure.unit == "/s" else "≤"
        bar = "" if figure.bar is None else f"{least}{figure.bar:,} {mark}"
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}x {figure.than}"
        table.add_row(figure.what, _number(figure.value) + figure.unit, bar, ratio)
    print(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def main(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help=f"What to measure: {', '.join(PARTS)}; all by default."),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(exists=True, help="A file of answers to measure with.")
    ] = None,
    guesses: Annotated[
        Path | None, typer.Option(exists=True, help="A file of what may be guessed.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(exists=True, help="Everyday dialogues to measure with.")
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Runs, of which the median counts.")
    ] = REPEATS,
    seconds: Annotated[float, typer.Option(min=0.0, help="CPU-seconds of a run.")] = SECONDS,
    json: Annotated[Path | None, typer.Option(help="Where to write the figures too.")] = None,
) -> None:
    """Measure the speed of the environments, the rewards and Wordle's optimal policy."""
    for part in parts or ():
        one_of("part", part, PARTS, "the speed benchmark")
    lists: dict[str, Settings] = {"built-in": {}}
    if answers:
        lists["given"] = {"answers": str(answers), "guesses": str(guesses or "answers")}
    settings = lists["given" if answers else "built-in"]
    print_machine()

    def measure(work: Work) -> float:
        return rate(work, repeats, seconds)

    measured: dict[str, Callable[[], Iterator[Figure]]] = {
        "steps": lambda: step_figures(settings, measure),
        "policy": lambda: policy_figures(settings, measure, repeats),
        "guesses": lambda: guess_figures(lists, min(repeats, 3)),
        "imports": lambda: import_figures(repeats),
        "dialogues": lambda: dialogue_figures(measure),
        "rewards": lambda: taught_figures(measure),
        "multiwoz": lambda: multiwoz_figures(measure),
        "questions": lambda: question_figures(measure),
        "visual": lambda: visual_figures(measure),
        "bargain": lambda: bargain_figures(measure),
        "desk": lambda: desk_figures(measure),
        "families": lambda: family_figures(measure),
        "replies": lambda: reply_figures({"data": str(data)} if data else {}, measure),
    }
    figures = [figure for part in parts or PARTS for figure in measured[part]()]
    show(figures)
    print("\nRates are per CPU-second, times in CPU-seconds; medians of", repeats, "runs.")
    if json:
        write_json_checked(
            json, {"machine": machine(), "figures": [_as_dict(figure) for figure in figures]}
        )


def _as_dict(figure: Figure) -> dict[str, Any]:
    names = ("what", "value", "unit", "bar", "holds", "ratio")
    to = figure.reference and figure.reference.what
    return {**{name: getattr(figure, name) for name in names}, "ratio_to": to}


if __name__ == "__main__":
    typer.run(main)
