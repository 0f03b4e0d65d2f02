"""Results as Markdown tables: over all tasks, by task, on the way there, and beside PyDial's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from agents.experiments import published
from agents.experiments.pydial_panel import SCRIPTED, Task
from agents.experiments.pydial_results import Results
from dialgym.experiments.statistics import (
    Estimate,
    environment_estimates,
    format_estimate,
    seed_estimate,
)
from dialgym.experiments.tables import markdown_table

REWARD, SECONDS = 1, 3
FALLS_SHORT = 5.0
"""Points of success below its namesake that are pointed out."""


class Group(NamedTuple):
    """Methods that have been run in the same tasks, which can be compared over all of them."""

    tasks: Sequence[Task]
    methods: Sequence[str]


def markdown(results: Results, note: str = "") -> str:
    """All tables, each under a heading that says what is in it; `note` stands before them."""
    last = f"{results.tests[-1]:,} dialogues"
    parts = [_head(results), *([f"{note}\n"] if note else [])]
    for group in groups(results):
        title = f"Over {len(group.tasks)} tasks"
        parts.append(f"## {title}\n\n{overall(results, group)}\n{_names(group.tasks)}\n")
    if any(map(results.draws, results.names())) and groups(results):
        parts.append(_ways(results, groups(results)[0]))
    parts += [
        f"## By task, after {last}\n\n{by_task(results)}",
        f"## On the way\n\nSuccess in per cent.\n\n{on_the_way(results)}",
    ]
    if _published(results):
        parts += [
            f"## Beside the paper's table\n\n{published.RECALLED_NOTE}\n\n{beside_paper(results)}",
            f"## Beside published logs\n\nSuccess / reward.\n\n{beside_logs(results)}",
        ]
    parts += [
        f"## Speed\n\nDialogues of training in a CPU second, in Env1.\n\n{speeds(results)}",
        f"## Made by\n\n{made_by(results)}",
    ]
    return "\n".join(parts)


def _ways(results: Results, group: Group) -> str:
    return (
        "## Acts drawn, and the best act\n\n"
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
        "after each number of training dialogues. In brackets 95 % intervals: over the seeds of a "
        "task Student's t, over several tasks a bootstrap of each task's seeds.\n"
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
        final = environment_estimates(matrices[-1])
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
            drawn, best = (environment_estimates(100 * way[..., 0]).mean for way in ways)
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
    success = seed_estimate(results.success(name, task, test))
    reward = results.of_task(name, task, test)[:, REWARD].mean()
    return f"{shown(success)} / {reward:.1f}"


def on_the_way(results: Results) -> str:
    """Success after each number of dialogues."""
    rows = [["task", "method", "seeds", *[f"{test:,}" for test in results.tests]]]
    for task in results.tasks:
        for name in results.names():
            found = [results.success(name, task, test) for test in results.tests]
            if len(found[-1]):
                cells = [shown(seed_estimate(values)) if len(values) else "" for values in found]
                rows.append([str(task), name, str(len(found[-1])), *cells])
    return markdown_table(rows)


# Beside others' figures


def beside_paper(results: Results) -> str:
    """Success after 4,000 dialogues beside the paper's, task by task, and what that comes to."""
    pairs = published_pairs(results)
    heads = [head for name, theirs in pairs for head in (name, f"{theirs} (recalled)")]
    more = ["best learned here", "best learned there (recalled)", "handcrafted, original code"]
    rows = [["task", *heads, *more]]
    for task in _published(results):
        theirs = published.paper_scores(str(task))
        cells = [
            text
            for name, policy in pairs
            for text in (_success(results, name, task), f"{theirs[policy].success:.1f}")
        ]
        best, most = best_learned(results, task), max(s.success for s in theirs.values())
        own = f"{best[1]:.1f} ({best[0]})" if best else ""
        measured = f"{published.handcrafted(str(task)).success:.1f}"
        rows.append([str(task), *cells, own, f"{most:.1f}", measured])
    return markdown_table(rows) + "\n" + "\n".join(f"- {line}" for line in findings(results)) + "\n"


def findings(results: Results) -> Iterator[str]:
    """Number of tasks in which the best here is above the paper's, and methods below namesakes."""
    tasks = _published(results)
    best = {task: found for task in tasks if (found := best_learned(results, task))}
    above = [t for t in best if best[t][1] > max(s.success for s in _scores(t))]
    count = f"of {len(best)} tasks"
    yield f"The best learned policy is above all learned ones of the paper in {len(above)} {count}."
    higher = [task for task in best if best[task][1] > _handcrafted(results, task)]
    yield f"It is above the handcrafted policy in {len(higher)} {count}."
    for name, theirs in published_pairs(results):
        gaps = {str(task): _gap(results, name, theirs, task) for task in tasks}
        short = [f"{gap:.1f} in {task}" for task, gap in gaps.items() if gap > FALLS_SHORT]
        if short:
            yield f"{name} is below its namesake by {', '.join(short)}."


def published_pairs(results: Results) -> list[tuple[str, str]]:
    """Methods, each with the paper's policy of its name."""
    pairs = [(name, published.published_name(name)) for name in results.names()]
    return [(name, theirs) for name, theirs in pairs if theirs and theirs in published.policies()]


def _published(results: Results) -> list[Task]:
    """The tasks that there are figures of others for."""
    return [task for task in results.tasks if published.covers(str(task))]


def _gap(results: Results, name: str, theirs: str, task: Task) -> float:
    """Points of success by which a method is below the paper's; 0 where it has not been run."""
    own = results.success(name, task, results.tests[-1])
    return published.paper_scores(str(task))[theirs].success - own.mean() if len(own) else 0.0


def best_learned(results: Results, task: Task) -> tuple[str, float] | None:
    """Learned method with the most success at the end, and that success; None for none."""
    learned = [name for name in results.names() if name not in SCRIPTED]
    found = [(n, results.success(n, task, results.tests[-1])) for n in learned]
    means = [(name, float(values.mean())) for name, values in found if len(values)]
    return max(means, key=lambda pair: pair[1], default=None)


def _handcrafted(results: Results, task: Task) -> float:
    """Success of the handcrafted policy here or, where it has not been run, of the original."""
    found = results.success("handcrafted", task, results.tests[-1])
    return float(found.mean()) if len(found) else published.handcrafted(str(task)).success


def beside_logs(results: Results) -> str:
    """Learning curves of published logs, and of their namesakes here."""
    after = [1000, 2000, 3000, 4000]
    rows = [["task", "policy", "seeds", *[f"{number:,}" for number in after]]]
    for log in published.log_curves():
        scores = [f"{s.success:.1f} / {s.reward:.1f}" for s in log.scores.values()]
        rows.append([log.task, f"{log.policy} (log)", str(log.seeds), *scores])
        for name in results.names():
            if published.published_name(name) == log.policy:
                rows += _own_curve(results, name, log.task, after)
    return markdown_table(rows)


def _own_curve(results: Results, name: str, task: str, after: Sequence[int]) -> list[list[str]]:
    place = next((t for t in results.tasks if str(t) == task), None)
    if place is None or not _has(results, name, place):
        return []
    found = [results.of_task(name, place, number) for number in after]
    if not any(map(len, found)):
        return []
    cells = [f"{100 * f[:, 0].mean():.1f} / {f[:, 1].mean():.1f}" if len(f) else "" for f in found]
    return [[task, name, str(max(map(len, found))), *cells]]


def speeds(results: Results) -> str:
    """Speed of each method's learning, beside the original in LAP-Env1."""
    tasks = [task for task in results.tasks if task.env == 1]
    rows = [["method", *map(str, tasks), "original, LAP-Env1"]]
    for name in results.names():
        if name not in SCRIPTED:
            cells = [_speed(results, name, task) for task in tasks]
            original = published.speed().get(published.published_name(name) or "")
            rows.append([name, *cells, "" if original is None else f"{original:g}"])
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


def _scores(task: Task) -> Sequence[published.Score]:
    return list(published.paper_scores(str(task)).values())


def _has(results: Results, name: str, task: Task) -> bool:
    return len(results.of_task(name, task, results.tests[-1])) > 0


def _success(results: Results, name: str, task: Task) -> str:
    found = results.success(name, task, results.tests[-1])
    return f"{found.mean():.1f}" if len(found) else ""


def difference(estimate: Estimate) -> str:
    """Format a difference of percentages, with its sign: ``+3.1 [1.0, 5.2]``."""
    return format_estimate(estimate, 1, signed=True)


def shown(estimate: Estimate) -> str:
    """Format a percentage with its interval, cut to what a percentage can be."""
    return format_estimate(estimate, 1, percent=True)
