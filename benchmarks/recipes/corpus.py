"""Recipe: imitation of people, from a corpus with dialogue acts (`--data`), scored in two ways.

How well the next acts of held-out dialogues are predicted, and what the policy is worth when it
plays itself. The world is that of `$DIALGYM_MULTIWOZ`, or the one that is built in.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import agents
import dialgym
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Column, Line, with_interval
from dialgym.datasets import ActData
from dialgym.io.files import write_text
from dialgym.tasks.multiwoz.corpus import MultiWOZCorpus

ID = "dialgym/MultiWOZ-act-v0"
WEIGHTS = {"BC": 1.0, "MLE, weight 2": 2.0, "MLE, weight 5": 5.0}
"""Methods, and the weight of an act that was chosen."""
STEPS, EPISODES = 4_000, 1_000
PREDICTED = "predicted.json"


def runs(folder: Path, seeds: int, data: str | None = None) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    if data is None:
        raise SystemExit("corpus: give the corpus to learn from, --data PATH_OR_HUB_NAME")
    tested = {"goals": "test"}
    return [
        Run(method, ID, seed, folder / f"weight{weight:g}-seed{seed}", clone, (data, weight),
            tested, deterministic=True)
        for seed in range(seeds)
        for method, weight in WEIGHTS.items()
    ]  # fmt: skip


def clone(run: Run) -> None:
    """Imitation of the split that is not tested."""
    data, weight = run.settings
    rows = dialogues(run.folder.parent, data, learned_split(data))
    train_by("mle", run, total_timesteps=STEPS, hyperparameters={"pos_weight": weight}, data=rows)


def learned_split(data: str) -> str:
    """The training split, or where a corpus comes without it that of validation."""
    try:
        return "train" if len(MultiWOZCorpus(data, "train")) else "validation"
    except ValueError:
        return "validation"


def dialogues(folder: Path, data: str, split: str) -> Path:
    """The folder of a split's dialogues, held again once for all runs."""
    path = folder / f"corpus-{split}"
    corpus = MultiWOZCorpus(data, split)
    dialgym.collect(
        ID, "corpus", len(corpus), path=path, policy_kwargs={"path": data, "split": split}
    )
    return path


def predicted(run: Run) -> dict[str, float]:
    """Precision, recall and F1 of all acts of the test split, greedy; kept in the run's folder."""
    kept = run.folder / PREDICTED
    if not kept.is_file():
        rows = dialogues(run.folder.parent, run.settings[0], "test")
        found = agreement(agents.load(run.model), dialgym.load_dataset(rows).acts())
        write_text(kept, json.dumps(found) + "\n")
    scores: dict[str, float] = json.loads(kept.read_text("utf-8"))
    return scores


def agreement(model: agents.MLE, data: ActData) -> dict[str, float]:
    """Micro-averaged precision, recall and F1 of greedy acts, within masks and what was chosen."""
    wanted = data.decisions.actions.astype(bool)
    allowed = data.decisions.action_masks | wanted
    chosen, _ = model.predict(data.decisions.observations, deterministic=True, action_masks=allowed)
    hits = (chosen.astype(bool) & wanted).sum()
    precision, recall = hits / max(chosen.sum(), 1), hits / max(wanted.sum(), 1)
    f1 = 2 * hits / max(chosen.sum() + wanted.sum(), 1)
    return {"precision": float(precision), "recall": float(recall), "f1": float(f1)}


def _column(name: str) -> Column:
    return lambda line: with_interval(np.array([predicted(run)[name] for run in line.runs]))


def _success(line: Line) -> str:
    return with_interval(line.solved.mean(1))


BASE = ("method", "seeds", "mean return")
COLUMNS = {
    "precision": _column("precision"),
    "recall": _column("recall"),
    "F1 of the next acts": _column("f1"),
    "success, by seeds": _success,
}
NOTE = f"""\
{STEPS:,} gradient steps on the corpus's training split (on its validation split where it comes
without one); precision, recall and F1 over all acts of the test split, chosen greedily. Success in
{EPISODES:,} dialogues a seed on the frozen test goals against the agenda user. In brackets 95 %
intervals (Student's t over the seeds' means).
"""
