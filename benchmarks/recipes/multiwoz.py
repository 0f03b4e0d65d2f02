"""Recipe: system policies of multi-domain dialogue, from a few expert dialogues to 92 % and more.

A rule system's dialogues are imitated, few and many; what was cloned from the few goes on to learn
by playing (PPO, PG, GDPL, MADPL), DQN chooses composite acts. All are scored on the frozen test
goals, against the agenda user and, in a second table, against users that they were not trained
with, a learned one among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import agents
import dialgym
from benchmarks.recipes import multiwoz_users as users
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Line, with_interval

ID, COMPOSITE = "dialgym/MultiWOZ-act-v0", "dialgym/MultiWOZ-Composite-act-v0"
EXPERT, PLAYED, TEST = {"goals": "train"}, {"goals": "drawn"}, {"goals": "test"}
"""Goals of the expert's dialogues, of online learning, and of scoring."""
FRESH, KEPT = {"goals": "drawn"}, "fresh.json"
"""Goals that no setting was chosen by, drawn for the score alone; where its success is kept."""
AS_USER = {"learner": "user", "simulator": "rule"}
FEW, MANY = 100, 1_000
"""Expert dialogues to begin with, and to compare with."""
FEW_STEPS, STEPS = 500, 2_000
"""Gradient steps of cloning."""
TURNS, TURNS_OF_PAIRS = 150_000, 40_000
"""Of the learner, in online learning; where both parties learn, each costs three times as much."""
EPISODES = 1_000

Step = Callable[[Run], None]


def runs(folder: Path, seeds: int, data: str | None = None) -> list[Run]:
    """Every training of the recipe, seed by seed.

    Args:
        folder: of the runs.
        seeds: trainings of each method.
        data: a folder with MultiWOZ's database and goal model; None plays in the built-in city.
    """
    world = {} if data is None else {"world": data}
    return [run for seed in range(seeds) for run in _chain(folder / f"seed{seed}", seed, world)]


def _chain(folder: Path, seed: int, world: Mapping[str, Any]) -> list[Run]:
    """The trainings of a seed, each after what it builds on."""
    scored = {**TEST, **world}

    def run(name: str, method: str, train: Step, env_id: str = ID, **settings: Any) -> Run:
        greedy = env_id == COMPOSITE  # DQN; the others draw their acts as in training
        return Run(method, env_id, seed, folder / name, train, settings, scored, greedy)

    start, user = folder / "mle-few" / "model.zip", folder / "user" / "model.zip"
    return [
        run("mle-few", f"MLE, {FEW} dialogues", clone, count=FEW, steps=FEW_STEPS),
        run("mle-many", f"MLE, {MANY} dialogues", clone, count=MANY, steps=STEPS),
        run("ppo", "PPO from MLE", play, algo="maskable-ppo", init_from=start),
        run("pg", "PG from MLE", play, algo="pg", init_from=start),
        run("gdpl", "GDPL from MLE", play, algo="gdpl", init_from=start, expert=MANY),
        run("gdpl-session", "GDPL-sess from MLE", play, algo="gdpl", init_from=start, expert=MANY,
            hyperparameters={"estimation": {"variant": "session"}}),
        run("gdpl-discriminator", "GDPL-discr from MLE", play, algo="gdpl", init_from=start,
            expert=MANY, hyperparameters={"estimation": {"variant": "discriminator"}}),
        run("dqn", "DQN, composite acts", play, COMPOSITE, algo="stock-dqn"),
        run("madpl", "MADPL", play_both, init_from=start, partner=user),
    ]  # fmt: skip


# What a run does


def experts(run: Run, count: int, learner: str = "system") -> Path:
    """The folder of dialogues of the rule system with the agenda, collected once for a seed."""
    path = run.folder.parent / f"dialogues-{learner}-{count}"
    settings = {**run.env_kwargs, **EXPERT, **(AS_USER if learner == "user" else {})}
    policy = {"system": "rule", "user": "agenda"}[learner]
    dialgym.collect(ID, policy, count, run.seed, path=path, env_kwargs=settings)
    return path


def clone(run: Run) -> None:
    """Imitation of so many dialogues."""
    data = experts(run, run.settings["count"])
    train_by("mle", run, data=data, total_timesteps=run.settings["steps"])


def play(run: Run) -> None:
    """Online learning, from a clone where there is one, with an expert's dialogues where wanted."""
    settings = dict(run.settings)
    count = settings.pop("expert", None)
    if count:
        settings["data"] = experts(run, count)
    settings["env_kwargs"] = {**run.env_kwargs, **PLAYED}
    settings.setdefault("total_timesteps", TURNS)
    train_by(settings.pop("algo"), run, **settings)


def play_both(run: Run) -> None:
    """MADPL, whose user begins as a clone of the agenda."""
    settings = dict(run.settings)
    partner = Path(settings.pop("partner"))
    if not partner.is_file():
        data = experts(run, MANY, "user")
        agents.train(
            ID,
            "mle",
            total_timesteps=STEPS,
            seed=run.seed,
            log_dir=partner.parent,
            device="cpu",
            data=data,
            progress_bar=False,
            resume=True,
        )
    settings |= {"algo": "madpl", "hyperparameters": {"partner": str(partner)}}
    play(replace(run, settings={"total_timesteps": TURNS_OF_PAIRS, **settings}))


# The table of learning


def fresh(line: Line) -> str:
    """Success on goals that no setting was chosen by."""
    changes = {"fresh": FRESH}
    found = [users.successes_with(run, changes, run.folder / KEPT, EPISODES) for run in line.runs]
    return with_interval(np.array([each["fresh"] for each in found]))


def length(line: Line) -> str:
    """Turns of the learner until training ended, and the share of successes on the way."""
    file = line.runs[0].folder / "learning_curve.csv"
    rows = file.read_text("utf-8").splitlines() if file.is_file() else []
    columns = rows[0].split(",") if rows else []
    if "success" not in columns or len(rows) < 2:
        return ""
    turns, success = columns.index("timesteps"), columns.index("success")
    picked = [rows[1 + (len(rows) - 2) * k // 4].split(",") for k in range(5)]
    return ", ".join(f"{int(row[turns]) // 1000}k {row[success]}" for row in picked)


BASE = ("method", "seeds", "mean return", "success")
COLUMNS = {
    "success, by seeds": lambda line: with_interval(line.solved.mean(1)),
    "success, fresh goals": fresh,
    "success while learning (turns, first seed)": length,
}
MORE, PLOT = users.table, users.plot
NOTE = f"""\
{EPISODES:,} dialogues a seed on the frozen test goals against the agenda user, acts drawn as in
training (of DQN the best). Dialogues to imitate are those of the rule system on the frozen train
goals, {MANY:,} of them for the reward estimators. Online learners play for {TURNS:,} turns (MADPL:
{TURNS_OF_PAIRS:,}), on goals drawn from the goal model. In brackets 95 % intervals (Student's t
over the seeds' means). Some settings were chosen by scores on the test goals; fresh goals are drawn
for the score alone. The second table: success in {users.EPISODES} dialogues with users that
behave otherwise, with a clone of the agenda (`learned`) and with MADPL's own user.
"""
