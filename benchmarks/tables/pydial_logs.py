"""Success and reward of PyDial's policies by the logs that its users have published.

    git clone https://github.com/zxsted/Pydial zxsted
    git clone https://github.com/paulaWesselmann/testing_pydial wesselmann
    python -m benchmarks.tables.pydial_logs zxsted/Pydial=zxsted \
        paulaWesselmann/testing_pydial=wesselmann

Reads the files of each curve in `agents/experiments/pydial.yaml` at its commit, prints the means
over trainings, and exits with 1 where they are not those of the file.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatch

import numpy as np

from agents.experiments.published import LogCurve, Score, log_commits, log_curves

STAGE = re.compile(r"Evaluating \S+\.(\d+): error-rate=\d+ num-dialogs=\d+")
AVERAGE = re.compile(r"Average (success|reward)\s*= (-?[\d.]+)")
TRAINING = "*** Training Iteration"
BATCH = 1000
"""Dialogues of training before each test."""
CLOSE = 0.051
"""Rounding of the figures in the file, to one digit."""


def read_tests(lines: Iterable[str]) -> dict[int, Score]:
    """Read the tests in a training's log, by dialogues of training before them."""
    found: dict[int, dict[str, float]] = {}
    dialogues = 0
    for line in lines:
        if TRAINING in line:
            dialogues = 0
        elif stage := STAGE.search(line):
            dialogues = BATCH * int(stage[1])
        elif dialogues and (average := AVERAGE.search(line)):
            found.setdefault(dialogues, {})[average[1]] = float(average[2])
    return {n: Score(**scores) for n, scores in found.items() if len(scores) == len(Score._fields)}


def mean_of(trainings: Iterable[dict[int, Score]], after: Iterable[int]) -> list[Score]:
    """Mean scores over trainings after each number of dialogues."""
    every = [*trainings]
    return [Score(*np.mean([tests[n] for tests in every], axis=0).tolist()) for n in after]


def logs(folder: str, curve: LogCurve) -> list[list[str]]:
    """Lines of each log of a curve in a clone of its repository, at the commit."""
    commit = log_commits()[curve.repository]
    names = _git(folder, "ls-tree", "-r", "--name-only", commit).splitlines()
    files = [name for name in names if fnmatch(name, curve.files)]
    return [_git(folder, "show", f"{commit}:{name}").splitlines() for name in files]


def _git(folder: str, *arguments: str) -> str:
    command = ["git", "-C", folder, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def agrees(curve: LogCurve, means: Iterable[Score]) -> bool:
    """Return True if the means are the figures of a curve."""
    return bool(np.allclose([*curve.scores.values()], [*means], rtol=0, atol=CLOSE))


def main() -> None:
    """Print the means of every curve, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clones", nargs="+", metavar="OWNER/NAME=FOLDER")
    clones = dict(each.split("=", 1) for each in parser.parse_args().clones)
    right = True
    for curve in log_curves():
        trainings = [read_tests(lines) for lines in logs(clones[curve.repository], curve)]
        means = mean_of(trainings, curve.scores)
        same = agrees(curve, means) and len(trainings) == curve.seeds
        cells = "  ".join(f"{score.success:.1f} / {score.reward:.1f}" for score in means)
        verdict = "" if same else "  differs"
        print(f"{curve.task} {curve.policy}, {len(trainings)} seeds: {cells}{verdict}")
        right = right and same
    sys.exit(not right)


if __name__ == "__main__":
    main()
