"""Results as Markdown tables, by fidelity: over all tasks, by task, on the way there, speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from agents.experiments import published
from agents.experiments.pydial_comparisons import (
    COMPARED_NOTE,
    beside_handcrafted,
    beside_logs,
    beside_original,
    logs_note,
)
from agents.experiments.pydial_panel import SCRIPTED, Task
from agents.experiments.pydial_results import Results
from dialgym.experiments.row_files import PYDIAL
from dialgym.experiments.statistics import (
    PERCENT,
    Estimate,
    environment_estimates,
    format_estimate,
    seed_estimate,
)
from dialgym.experiments.tables import markdown_table

REWARD, SECONDS = 1, 3
UNMASKED = (2, 4)
"""Settings in which every act is allowed at any time."""
MOST_GROUPS = 2
"""Sets of tasks that the documentation shows, the largest first."""
FIDELITY_NOTE = (
    "With fidelity `pydial` the environments have the original's faults, and figures compare with "
    "its own; with `correct` these are mended. Rows of the two are never mixed."
)


class Group(NamedTuple):
    """Methods that have been run in the same tasks, which can be compared over all of them."""

    tasks: Sequence[Task]
    methods: Sequence[str]


def markdown(results: Results, note: str = "") -> str:
    """All tables, each under a heading that says what is in it; `note` stands before them."""
    parts = [_head(results), *([f"{note}\n"] if note else []), f"{FIDELITY_NOTE}\n"]
    if len(results.fidelities) > 1:
        parts.append(f"## Both fidelities\n\n{both_fidelities(results)}")
    for fidelity in results.fidelities:
        parts += _of_fidelity(results.of_fidelity(fidelity), fidelity)
    return "\n".join([*parts, f"## Made by\n\n{made_by(results)}"])


def summary(results: Results) -> str:
    """The tables of the documentation: by fidelity, success by masks and beside handcrafted."""
    parts = []
    for fidelity in results.fidelities:
        found = results.of_fidelity(fidelity)
        last = f"{found.tests[-1]:,} dialogues"
        parts.append(f"**Fidelity `{fidelity}`**, success in per cent after {last}:\n")
        parts += [by_masks(found, group) for group in groups(found)[:MOST_GROUPS]]
        if table := beside_handcrafted(found):
            parts.append(f"{COMPARED_NOTE}\n\n{table}")
    return "\n".join(parts)


def by_masks(results: Results, group: Group) -> str:
    """Mean success over all tasks of a group, over those with masks and over those without."""
    halves = {
        "with masks": [task for task in group.tasks if task.env not in UNMASKED],
        "without": [task for task in group.tasks if task.env in UNMASKED],
    }
    parts = {f"{len(group.tasks)} tasks": group.tasks, **(halves if all(halves.values()) else {})}
    last, rows = results.tests[-1], []
    for name in group.methods:
        found = [matrix(results, name, tasks, last) for tasks in parts.values()]
        means = [environment_estimates(values, PERCENT).mean for values in found]
        rows.append((means[0].value, [name, str(found[0].shape[1]), *map(shown, means)]))
    ordered = [row for _, row in sorted(rows, key=lambda row: -row[0])]
    return markdown_table([["method", "seeds", *parts], *ordered])


def _of_fidelity(results: Results, fidelity: str) -> Iterator[str]:
    """The tables of one fidelity, whose rows are all that `results` has."""
    last = f"{results.tests[-1]:,} dialogues"
    yield f"## Fidelity {fidelity}\n"
    for group in groups(results):
        title = f"Over {len(group.tasks)} tasks"
        yield f"### {title}\n\n{overall(results, group)}\n{_names(group.tasks)}\n"
    if table := beside_handcrafted(results):
        yield f"### Beside the handcrafted policy, after {last}\n\n{COMPARED_NOTE}\n\n{table}"
    if any(map(results.draws, results.names())) and groups(results):
        yield _ways(results, groups(results)[0])
    yield f"### By task, after {last}\n\n{by_task(results)}"
    yield f"### On the way\n\nSuccess in per cent.\n\n{on_the_way(results)}"
    if fidelity == PYDIAL and any(published.covers(str(task)) for task in results.tasks):
        yield (
            f"### Beside the original\n\nSuccess / reward. {published.HANDCRAFTED_NOTE}\n\n"
            f"{beside_original(results)}"
        )
        yield f"### Beside published logs\n\n{logs_note()}\n{beside_logs(results)}"
    yield f"### Speed\n\nDialogues of training in a CPU second, in Env1.\n\n{speeds(results)}"


def both_fidelities(results: Results) -> str:
    """Mean success of each method by fidelity, over the tasks that it has played with both."""
    parts = [results.of_fidelity(fidelity) for fidelity in results.fidelities]
    last = results.tests[-1]
    rows = [["method", "tasks", *results.fidelities]]
    for name in results.names():
        played = [{str(t) for t in part.tasks if _has(part, name, t)} for part in parts]
        common = set.intersection(*played)
        means = [
            np.mean([part.success(name, t, last).mean() for t in part.tasks if str(t) in common])
            for part in parts
            if common
        ]
        if common:
            rows.append([name, str(len(common)), *(f"{mean:.1f}" for mean in means)])
    return markdown_table(rows)


def _ways(results: Results, group: Group) -> str:
    return (
        "### Acts drawn, and the best act\n\n"
        "Methods that learn by drawing acts are scored by tests that do. Here they are also tested "
        "taking the likeliest act each time: success / reward, and by how much drawing succeeds "
        f"more, after {results.tests[-1]:,} dialogues.\n\n{drawn_and_best(results, group)}\n"
        f"{_names(group.tasks)}\n"
    )


def _head(results: Results) -> str:
    runs = [run for figures in results.methods.values() for run in figures.runs]
    episodes = sorted({run["episodes"] for run in runs})
    sources = sorted({run["source"] for run in runs})
    return (
        "# PyDial's benchmark\n\n"
        f"Domains: {' and '.join(sources)}. Tests of {', '.join(map(str, episodes))} dialogues "
        "after each number of training dialogues. In brackets 95 % intervals: of "
        "Student's t over seeds (several tasks: Welch and Satterthwaite; the interquartile mean: a "
        "jackknife of the seeds), on the logit scale.\n"
    )


# Over several tasks


def groups(results: Results) -> list[Group]:
    """A group for each set of tasks that some method has been run in, the largest first."""
    run_in = {
        name: [t for t in results.tasks if _has(results, name, t)] for name in results.names()
    }
    sets = sorted({tuple(tasks) for tasks in run_in.values()}, key=len, reverse=True)
    found = [Group(s, [n for n, t in run_in.items() if set(s) <= set(t)]) for s in sets]
    return [group for group in found if len(group.tasks) > 1]


def overall(results: Results, group: Group) -> str:
    """Mean and interquartile mean of success, on the way and at the end, and mean reward."""
    tests = results.tests
    rows = [["method", "seeds", "mean", "IQM", *[f"after {n:,}" for n in tests[:-1]], "reward"]]
    for name in group.methods:
        matrices = [matrix(results, name, group.tasks, test) for test in tests]
        final = environment_estimates(matrices[-1], PERCENT)
        rewards = [results.of_task(name, t, tests[-1])[:, REWARD].mean() for t in group.tasks]
        means = [f"{found.mean():.1f}" if found.size else "" for found in matrices[:-1]]
        seeds = str(matrices[-1].shape[1])
        row = [name, seeds, shown(final.mean), shown(final.iqm), *means, f"{np.mean(rewards):.2f}"]
        rows.append(row)
    rows[1:] = sorted(rows[1:], key=lambda row: -float(row[2].split()[0]))
    return markdown_table(rows)


def matrix(results: Results, method: str, tasks: Sequence[Task], test: int) -> np.ndarray:
    """(K, S) success of K tasks, with as many seeds as all of them have."""
    found = [results.success(method, task, test) for task in tasks]
    seeds = min(len(values) for values in found)
    return np.stack([values[:seeds] for values in found])


def drawn_and_best(results: Results, group: Group) -> str:
    """Methods that learned by drawing acts, tested both ways: success and reward."""
    rows = [["method", "acts drawn", "best act", "difference"]]
    for name in filter(results.draws, group.methods):
        both = [
            [results.of_task(name, t, results.tests[-1], drawn) for t in group.tasks]
            for drawn in (True, False)
        ]
        seeds = min(len(found) for way in both for found in way)
        if seeds:
            ways = [np.stack([found[:seeds, :2] for found in way]) for way in both]
            drawn, best = (environment_estimates(100 * way[..., 0], PERCENT).mean for way in ways)
            gap = environment_estimates(100 * (ways[0] - ways[1])[..., 0]).mean
            rewards = [f"{way[..., REWARD].mean():.1f}" for way in ways]
            cells = [f"{shown(e)} / {r}" for e, r in zip((drawn, best), rewards)]
            rows.append([name, *cells, difference(gap)])
    return markdown_table(rows)


def _names(tasks: Sequence[Task]) -> str:
    return "Tasks: " + ", ".join(map(str, tasks)) + "."


# By task


def by_task(results: Results) -> str:
    """Success and reward of each method in each task at the end."""
    names, last = results.names(), results.tests[-1]
    rows = [["task", *names]]
    rows += [[str(t), *(_final(results, name, t, last) for name in names)] for t in results.tasks]
    return markdown_table(rows)


def _final(results: Results, name: str, task: Task, test: int) -> str:
    if not _has(results, name, task):
        return ""
    success = seed_estimate(results.success(name, task, test), PERCENT)
    reward = results.of_task(name, task, test)[:, REWARD].mean()
    return f"{shown(success)} / {reward:.1f}"


def on_the_way(results: Results) -> str:
    """Success after each number of dialogues."""
    rows = [["task", "method", "seeds", *[f"{test:,}" for test in results.tests]]]
    for task in results.tasks:
        for name in results.names():
            found = [results.success(name, task, test) for test in results.tests]
            if len(found[-1]):
                cells = [
                    shown(seed_estimate(values, PERCENT)) if len(values) else "" for values in found
                ]
                rows.append([str(task), name, str(len(found[-1])), *cells])
    return markdown_table(rows)


# Speed and origin


def speeds(results: Results) -> str:
    """Speed of each method's learning."""
    tasks = [task for task in results.tasks if task.env == 1]
    rows = [["method", *map(str, tasks)]]
    for name in results.names():
        if name not in SCRIPTED:
            rows.append([name, *(_speed(results, name, task) for task in tasks)])
    return markdown_table(rows)


def _speed(results: Results, name: str, task: Task) -> str:
    found = results.of_task(name, task, results.tests[-1])
    return f"{results.tests[-1] / found[:, SECONDS].mean():.1f}" if len(found) else ""


def made_by(results: Results) -> str:
    """The commands of the runs, and with which versions; each method's JSON file has the rest."""
    runs = [run for figures in results.methods.values() for run in figures.runs]
    commands = dict.fromkeys(run["command"] for run in runs if run["command"])
    packages = dict.fromkeys(
        ", ".join(f"{name} {number}" for name, number in run["versions"].items()) for run in runs
    )
    seeds = sorted({row.seed for f in results.methods.values() for row in f.rows})
    lines = [*(f"    {command}" for command in commands), "", *(f"- {text}" for text in packages)]
    return "\n".join([*lines, f"- seeds {', '.join(map(str, seeds))}", ""])


def _has(results: Results, name: str, task: Task) -> bool:
    return len(results.of_task(name, task, results.tests[-1])) > 0


def difference(estimate: Estimate) -> str:
    """Format a difference of percentages, with its sign: ``+3.1 [1.0, 5.2]``."""
    return format_estimate(estimate, 1, signed=True)


def shown(estimate: Estimate) -> str:
    """Format a percentage with its interval."""
    return format_estimate(estimate, 1)
