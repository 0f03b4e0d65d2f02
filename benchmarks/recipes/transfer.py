"""Recipe: dialogue policies that are trained in one domain and act in another.

Restaurants of Cambridge, then those of San Francisco, with twice as many slots and other values, at
15 % errors: as learned in the first, after some dialogues in the second, and without the first.
Hyperparameters are those of the algorithms' configurations, which were chosen on seeds 100 and
above; these are seeds 0 and above.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agents
import dialgym
from agents.training.callbacks import StopAfterDialogues
from agents.training.hyperparameters import read_hyperparameters
from agents.training.prepare import UNBOUNDED
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Line, with_interval

SOURCE, TARGET = "dialgym/CamRestaurants-Env3-act-v0", "dialgym/SFRestaurants-Env3-act-v0"
FIRST, MORE_DIALOGUES = 1_000, 500
"""Dialogues of training in the first domain, and in the second."""
SURER = {"exploration_initial_eps": 0.05}
"""Of who goes on: it knows what to do, more or less."""
EPISODES = 500


@dataclass(frozen=True)
class Method:
    """An algorithm whose policies act in any domain: its models have `transferred`."""

    name: str
    algo: str
    overrides: Any = None  # hyperparameters of who goes on in another domain
    drawn: bool = False  # it learns by drawing acts, and is tested so; else by the best act


METHODS = (
    Method("FeudalDQN", "feudal-dqn", SURER),
    Method("FeudalACER", "feudal-acer", SURER, drawn=True),
    Method("FeudalGain", "feudal-gain"),
    Method("Committee", "committee", drawn=True),
)


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return [
        run
        for seed in range(seeds)
        for method in METHODS
        for run in _chain(method, folder / method.algo / f"seed{seed}", seed)
    ]


def _chain(method: Method, folder: Path, seed: int) -> list[Run]:
    """The trainings of a method and a seed, each after what it builds on."""
    source = folder / "source" / "model.zip"

    def run(name: str, label: str, env_id: str, train: Any, **settings: Any) -> Run:
        settings |= {"algo": method.algo}
        label = f"{method.name}, {label}"
        greedy = not method.drawn
        return Run(label, env_id, seed, folder / name, train, settings, deterministic=greedy)

    more = {"dialogues": MORE_DIALOGUES}
    return [
        run("source", f"{FIRST:,} dialogues", SOURCE, learn, dialogues=FIRST),
        run("unseen", "from the first domain", TARGET, carry_over, source=source),
        run("tuned", f"from the first domain, {MORE_DIALOGUES} dialogues", TARGET, go_on,
            source=source, overrides=method.overrides or {}, **more),
        run("scratch", f"{MORE_DIALOGUES} dialogues", TARGET, learn, **more),
    ]  # fmt: skip


def learn(run: Run) -> None:
    """Training by playing."""
    settings = dict(run.settings)
    train_by(settings.pop("algo"), run, **settings)


def carry_over(run: Run) -> None:
    """The model of the first domain, as it is."""
    agents.save(_transferred(run), run.model)


def go_on(run: Run) -> None:
    """The model of the first domain learns on."""
    model = _transferred(run, **run.settings["overrides"])
    limit = StopAfterDialogues(run.settings["dialogues"], run.folder)
    model.learn(UNBOUNDED, callback=limit)
    agents.save(model, run.model)


def _transferred(run: Run, **changes: Any) -> Any:
    """The model of the first domain in that of the run."""
    rows = read_hyperparameters(run.settings["algo"], run.env_id, kind="acts")["n_envs"]
    env = dialgym.sb3_vec_env(run.env_id, rows, seed=run.seed)
    return agents.load(run.settings["source"], device="cpu").transferred(env, **changes)


def success(line: Line) -> str:
    """Mean of the seeds' shares of successes, and its interval."""
    return f"{with_interval(100 * line.solved.mean(1), 1)} %"


BASE = ("environment", "method", "seeds", "mean return")
COLUMNS = {"success": success}
NOTE = f"""\
Means over seeds (of training and evaluation) of {EPISODES} test dialogues each; in brackets
95 % intervals (Student's t over the seeds' means). FeudalACER and the committee draw acts, as when
they learn; the others take the best one. Without $DIALGYM_PYDIAL built-in domains of the
same sizes are played in the place of PyDial's, as the environment's label says.
"""
