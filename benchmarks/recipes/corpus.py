"""Imitation of a corpus with dialogue acts, and how well its next acts are predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
from agents.experiments.training_job import collect_once
from benchmarks.recipes.job import RecipeJob
from dialgym.datasets import ActData
from dialgym.tasks.multiwoz.corpus import MultiWOZCorpus


def prepare(folder: Path, given: str | None) -> dict[str, Any]:
    """No further settings.

    Raises:
        ValueError: no corpus is given.
    """
    if given is None:
        raise ValueError("corpus: give the corpus to learn from, --data PATH_OR_HUB_NAME")
    return {}


def clone(job: RecipeJob) -> None:
    """Imitate the split that is not tested."""
    job.train(data=dialogues(job, learned_split(str(job.recipe.given))))


def learned_split(data: str) -> str:
    """The training split, or where a corpus comes without it that of validation."""
    try:
        return "train" if len(MultiWOZCorpus(data, "train")) else "validation"
    except ValueError:
        return "validation"


def dialogues(job: RecipeJob, split: str) -> Any:
    """A split's dialogues, held again once for all runs."""
    data = str(job.recipe.given)
    path, count = job.root.resolve() / f"corpus-{split}", len(MultiWOZCorpus(data, split))
    named = {"path": data, "split": split}
    env_id = job.method.environment
    return collect_once(path, env_id, "corpus", count, policy_kwargs=named)


def predicted(job: RecipeJob, _: Any) -> dict[str, float]:
    """Precision, recall and F1 of all acts of the test split, greedy."""
    return agreement(agents.load(job.model), dialogues(job, "test").acts())


def agreement(model: agents.MLE, data: ActData) -> dict[str, float]:
    """Micro-averaged precision, recall and F1 of greedy acts, within masks and what was chosen."""
    wanted = data.decisions.actions.astype(bool)
    allowed = data.decisions.action_masks | wanted
    chosen, _ = model.predict(data.decisions.observations, deterministic=True, action_masks=allowed)
    hits = (chosen.astype(bool) & wanted).sum()
    precision, recall = hits / max(chosen.sum(), 1), hits / max(wanted.sum(), 1)
    f1 = 2 * hits / max(chosen.sum() + wanted.sum(), 1)
    return {"precision": float(precision), "recall": float(recall), "f1": float(f1)}
