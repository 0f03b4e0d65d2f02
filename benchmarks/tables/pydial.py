"""The handcrafted policy on PyDial's benchmark, beside PyDial's own figures for it.

    DIALGYM_PYDIAL=FOLDER python -m benchmarks.tables.pydial [--episodes 200] [--orders 10]
                                                             [--domains ...] [--envs ...]

Writes a record and prints its table: success and return with ``fidelity="pydial"``, those of
PyDial, whether the means are within its 95 % intervals, and the same with the faults mended,
``fidelity="correct"``. Exits with 1 where a mean is not within. Settings 2 and 4 are left out: they
differ from 1 and 3 in masks, which the policy does not heed.

Of values that are believed alike, the first of the ontology is taken here; in the original which
one is drawn again in each process. So the values of each slot are put into several orders, and the
intervals are those of the means of orders. The last column is how far these lie apart beyond what
their dialogues account for.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

import dialgym
from agents.experiments.published import DOMAINS, handcrafted
from benchmarks.tables.records import RECORDS, Figures, make_record
from dialgym.registry import entry_of, make_task


class Figure(NamedTuple):
    """A mean and half of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.half:.2f}"

    def holds(self, other: "Figure") -> bool:
        """Return True if the mean of `other` is within the interval."""
        return abs(self.mean - other.mean) <= self.half


ENVS = (1, 3, 5, 6)
"""Settings; 2 and 4 differ from 1 and 3 in masks alone."""


def _original(task: str) -> tuple[Figure, Figure]:
    means, halves = handcrafted(task)
    return Figure(means.success, halves.success), Figure(means.reward, halves.reward)


ORIGINAL = {
    (domain, env): _original(f"{short}-Env{env}")
    for short, domain in DOMAINS.items()
    for env in ENVS
}
"""Success in % and return of PyDial, by domain and setting."""

NAME, COMMAND = "slot_filling", "DIALGYM_PYDIAL=FOLDER python -m benchmarks.tables.pydial"
FIDELITIES = ("pydial", "correct")
HEAD = ("env", "domain", "success %", "PyDial", "return", "PyDial", "within",
        "mended: success %", "return", "orders")  # fmt: skip
VERDICTS = {
    (True, True): "both",
    (True, False): "success",
    (False, True): "return",
    (False, False): "neither",
}


def figure(values: np.ndarray) -> Figure:
    """The mean of (orders, episodes) values, and its interval: Student's, of the orders' means."""
    means = values.mean(1)
    if len(means) == 1:  # no other order: the normal approximation, of its dialogues
        return Figure(float(means[0]), float(1.96 * values.std() / np.sqrt(values.size)))
    half = t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return Figure(float(means.mean()), float(half))


def between(values: np.ndarray) -> float:
    """The standard deviation of (orders, episodes) values between orders, by their variances."""
    if len(values) < 2:
        return 0.0
    within = values.var(1, ddof=1).mean() / values.shape[1]
    return float(np.sqrt(max(values.mean(1).var(ddof=1) - within, 0.0)))


class Measured(NamedTuple):
    """Success in % and return of the handcrafted policy here: (orders, episodes)."""

    success: np.ndarray
    returns: np.ndarray

    @property
    def figures(self) -> tuple[Figure, Figure]:
        return figure(self.success), figure(self.returns)


def measured(domain: str, env: int, arguments: argparse.Namespace, fidelity: str) -> Measured:
    """The policy on each order of the values, with dialogues of its own."""
    env_id = f"dialgym/{domain}-Env{env}-act-v0"
    source = make_task(entry_of(env_id), {"fidelity": fidelity}).domain.source
    if source == "built-in":
        raise SystemExit(
            f"{domain}: expected PyDial's own files; got the built-in domain of the same size. "
            "Set DIALGYM_PYDIAL to the folder of the files."
        )
    solved, returns = [], []
    for order in range(arguments.orders):
        with ordered(source, order) as path:
            settings = {"fidelity": fidelity, "domain": path}
            played = dialgym.evaluate(
                "handcrafted", env_id, arguments.episodes, (order,), env_kwargs=settings
            ).by_id[env_id]
        solved.append(100.0 * played.solved[0])
        returns.append(played.returns[0])
    return Measured(np.array(solved), np.array(returns))


@contextmanager
def ordered(source: str, order: int) -> Iterator[str]:
    """The path of a domain's files with the values of each slot in an order; 0 is their own."""
    rules = json.loads(Path(f"{source}-rules.json").read_text("utf-8"))
    rng = np.random.default_rng(order)
    for slot, values in rules["informable"].items() if order else ():
        rules["informable"][slot] = [values[i] for i in rng.permutation(len(values)).tolist()]
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(source).name
        Path(f"{path}-rules.json").write_text(json.dumps(rules), "utf-8")
        copyfile(f"{source}-dbase.db", f"{path}-dbase.db")
        yield str(path)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Success and returns of each order, by fidelity, in the tasks that are asked for."""
    return {
        "tasks": [
            {"domain": domain, "env": env}
            | {kind: _plain(measured(domain, env, arguments, kind)) for kind in FIDELITIES}
            for domain, env in ORIGINAL
            if domain in arguments.domains and env in arguments.envs
        ]
    }


def _plain(found: Measured) -> dict[str, list[list[float]]]:
    return {
        "solved": (found.success / 100).astype(int).tolist(),
        "returns": found.returns.round(6).tolist(),
    }


def lines(figures: Figures) -> Iterator[tuple[str, bool]]:
    """The lines of the table, and True where each is as it should be."""
    yield f"| {' | '.join(HEAD)} |", True
    yield f"| {' | '.join(['---'] * len(HEAD))} |", True
    for task in figures["tasks"]:
        domain, env = task["domain"], task["env"]
        ours, mended = (
            Measured(100.0 * np.array(task[kind]["solved"]), np.array(task[kind]["returns"]))
            for kind in FIDELITIES
        )
        original = ORIGINAL[domain, env]
        within = [theirs.holds(found) for theirs, found in zip(original, ours.figures)]
        pairs = [cell for pair in zip(ours.figures, original) for cell in pair]
        verdict = VERDICTS[within[0], within[1]]
        cells = [env, domain, *pairs, verdict, *mended.figures, f"{between(ours.success):.2f}"]
        yield f"| {' | '.join(map(str, cells))} |", all(within)


def table(figures: Figures) -> str:
    """The table."""
    return "".join(f"{line}\n" for line, _ in lines(figures))


def main() -> None:
    """Measure, write the record and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=200, help="of each order")
    parser.add_argument("--orders", type=int, default=10, help="of the values of each slot")
    parser.add_argument("--domains", nargs="+", default=sorted({d for d, _ in ORIGINAL}))
    parser.add_argument("--envs", nargs="+", type=int, default=sorted({e for _, e in ORIGINAL}))
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the record")
    arguments = parser.parse_args()
    figures = make_record(NAME, COMMAND, lambda: measure(arguments), arguments.records)
    print(table(figures), end="")
    sys.exit(not all(right for _, right in lines(figures)))


if __name__ == "__main__":
    main()
