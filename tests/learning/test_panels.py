"""A row of each panel of the leaderboard, trained again with a tenth of its budget.

Budgets, settings and hyperparameters are the registry's of the day. A bar is what a broken
algorithm does not reach: well above `random`, and below the worst of the seeds that were tried
when it was set. `python -m tests.learning.test_panels` prints what the rows come to now.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from agents.experiments.panel_jobs import jobs_of
from agents.experiments.pydial_panel import Task, learners_of, pydial_panel
from agents.experiments.run import run_jobs
from dialgym.experiments.panel import panel_named, panels
from dialgym.experiments.pydial_ranking import fidelity_of
from dialgym.experiments.row_files import read_row

SHARE = 0.1


class Rerun(NamedTuple):
    """A training that is repeated, and the return that it has to reach.

    Attributes:
        learner: of the panel.
        env: where.
        random: mean return of the random policy there.
        bar: mean return that has to be reached.
        share: of the budgets, where a tenth is too little to learn anything.
    """

    learner: str
    env: str
    random: float
    bar: float
    share: float = SHARE


RERUNS = {
    "wordle": Rerun("bc-ppo", "Wordle-20-v0", random=-5.0, bar=-2.0, share=0.5),
    "wordle-deep": Rerun("bc-30", "Wordle-431-v0", random=-6.0, bar=-5.2, share=0.25),
    "wordle-large": Rerun("bc-30", "Wordle-800-v0", random=-6.0, bar=-5.2, share=0.5),
    "wordle-distilled": Rerun("bc-ppo", "Wordle-20-v0", random=-5.0, bar=-2.0, share=0.5),
    "slot-filling-acts": Rerun("dqn", "CR-Env1", random=-6.1, bar=9.0),
    "slot-filling-acts-correct": Rerun("dqn", "CR-Env1", random=-6.1, bar=9.0),
    # -0.5 for one that does not learn
    "slot-filling-words": Rerun("ppo", "CamRestaurants-Env1-v0", random=-4.5, bar=3.0),
    "slot-filling-words-cloned": Rerun("bc", "CamRestaurants-Env2-v0", random=-4.5, bar=3.0),
    # -48 for one that does not learn
    "multi-domain": Rerun("bc", "MultiWOZ-v0", random=-49.0, bar=0.0),
    # -2.5 for one that does not learn
    "questions": Rerun("ppo", "VisualDialogue-100-v0", random=-3.0, bar=-2.1, share=0.5),
    "questions-distilled": Rerun("bc", "GuessMyCity-v0", random=-18.9, bar=-14.0, share=0.2),
    # 0.05 for one that does not learn, greedily, and 0.14 drawn
    "language": Rerun("bc", "DailyDialog-v0", random=0.14, bar=0.2),
    "held-out": Rerun("bc", "VisualDialogue-100-v0", random=-3.0, bar=-2.1, share=0.5),
    # below 0 for one that does not learn
    "service-desk": Rerun("bc", "ServiceDesk-act-v0", random=-0.05, bar=0.5, share=0.5),
    # -27 for one that does not learn, greedily
    "lmrl": Rerun("filtered-bc", "Maze-Partial-v0", random=-29.0, bar=-20.0, share=0.5),
    # -10 for one that says nothing
    "comments": Rerun("bc-10", "Comments-v0", random=-1.9, bar=-0.5, share=0.5),
}


def reached(name, rerun, folder, seed=0):
    """The mean return of the row, played as it was trained."""
    panel = panel_named(name)
    if panel.imported_from:
        return of_the_grid(panel, rerun, folder, seed)
    panel = panel.scaled(rerun.share)
    jobs = jobs_of(panel, [rerun.learner], [panel.environment(rerun.env)], [seed], folder)
    _, failures = run_jobs(jobs, 0)
    assert not failures
    return float(np.mean(read_row(jobs[0].result).column("return")))


def of_the_grid(chosen, rerun, folder, seed):
    """The mean return after a tenth of the dialogues of PyDial's benchmark."""
    domain, env = rerun.env.split("-Env")
    stages = (round(SHARE * chosen.stages[-1]),)
    task = Task(domain, int(env), fidelity=fidelity_of(chosen))
    panel = pydial_panel(learners_of([rerun.learner]), [task], stages)
    found, failures = run_jobs(
        jobs_of(panel, [rerun.learner], panel.environments, [seed], folder), 0
    )
    assert not failures
    return next(iter(found.values()))["stages"][-1]["reward"]


def test_every_panel_has_a_rerun_with_a_bar_above_random():
    assert set(RERUNS) == set(panels())
    for name, rerun in RERUNS.items():
        panel = panels()[name]
        if not panel.imported_from:
            assert rerun.learner in panel.algorithms
            assert panel.environment(rerun.env)
        assert rerun.bar > rerun.random


@pytest.mark.slow
@pytest.mark.parametrize("name", RERUNS)
def test_a_tenth_of_the_budget_is_well_above_random(name, tmp_path):
    rerun = RERUNS[name]
    assert reached(name, rerun, tmp_path) > rerun.bar


if __name__ == "__main__":
    for panel in sys.argv[1:] or RERUNS:
        for seed in range(3):
            with TemporaryDirectory() as folder:
                found = reached(panel, RERUNS[panel], Path(folder), seed)
            print(f"{panel}, {RERUNS[panel].learner}, seed {seed}: {found:.2f}", flush=True)
