"""Persuaders that learn from Persuasion for Good (Wang et al. 2019, arXiv 1906.06725), unplayed.

The donation of the person who was to be persuaded is the reward, at the end. Nobody can say what
another persuader would have been given, so that what is learned is estimated on dialogues that
were held out.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
from agents.experiments.training_job import LONG, train_quietly
from agents.offline.fitted_evaluation import FittedEvaluation, difference
from benchmarks.recipes.job import RecipeJob
from dialgym.datasets import Dataset, load_dataset
from dialgym.datasets.foreign import Choices, import_dialogues
from dialgym.experiments.result import Episodes
from dialgym.io.locks import locked

PLACE = "DIALGYM_PERSUASION"
"""Names the folder with the corpus: full_dialog.csv and donation.csv."""
MOST = 2.0
"""Dollars that a person had to give away; larger numbers in the table are none of this task."""
THIRD = 3


def train_on_people(job: RecipeJob) -> None:
    """Learn from the dialogues that are not held out."""
    method = job.method
    assert method.algorithm
    train_quietly(
        method.algorithm,
        method.environment,
        job.folder,
        job.seed,
        hyperparameters=job.filled(method.hyperparameters),
        env_kwargs={**method.settings},
        data=people(job, "train"),
        device=job.device,
    )


def people(job: RecipeJob, split: str) -> Dataset:
    """The dialogues of a split; the first job that needs them imports all."""
    folder = Path(job.method.settings["data"])
    with locked(folder.with_name(f"{folder.name}-import"), LONG):
        if not folder.is_dir():
            sizes = job.recipe.options["sizes"]
            import_dialogues(rows(_place()), folder, Choices(system="persuader", **sizes))
    return load_dataset(folder, split=split)


def _place() -> Path:
    named = os.environ.get(PLACE)
    if not named:
        raise ValueError(
            f"persuasion: expected ${PLACE} to name the folder with full_dialog.csv and "
            "donation.csv of Persuasion for Good, got nothing; export it"
        )
    return Path(named)


def rows(place: Path) -> Iterator[dict[str, Any]]:
    """The dialogues of the corpus, as `import_dialogues` takes them; a third of them is held out.

    Args:
        place: the folder with both tables: utterances by dialogue (B2), party (B4, 0 the persuader)
            and order; donations (B6) of the person of party 1.
    """
    with (place / "donation.csv").open(encoding="utf-8", newline="") as file:
        given = {row["B2"]: row["B6"] for row in csv.DictReader(file) if row["B4"] == "1"}
    turns: dict[str, list[dict[str, str]]] = {}
    with (place / "full_dialog.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            speaker = "persuader" if row["B4"] == "0" else "user"
            turns.setdefault(row["B2"], []).append({"speaker": speaker, "text": row["Unit"]})
    for name, said in turns.items():
        number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
        split = "test" if number % THIRD == 0 else "train"
        yield {"turns": said, "rating": min(float(given[name]), MOST), "split": split}


def estimates(job: RecipeJob, part: Episodes) -> dict[str, float]:
    """Fitted and weighted estimates on the dialogues that are held out, and likeness to people.

    `above` is the fitted value less the clone's, `again` that by the trunk of the next seed. For
    the policy that is no model the value is what people were given.
    """
    held_out = people(job, "test")
    likeness = {"likeness": float((part.returns / part.lengths).mean())}
    if job.method.policy is not None:
        returns = held_out.returns
        error = float(returns.std(ddof=1) / len(returns) ** 0.5)
        return {**likeness, "value": float(returns.mean()), "error": error}
    clone, reader, another, learned = (
        agents.load(one.model, device="cpu")
        for one in (*(job.of(name) for name in ("BC", "reader", "reader+1")), job)
    )
    settings, greedy = job.recipe.options["evaluation"], job.method.actions == "greedy"
    evaluation = FittedEvaluation(reader, held_out, **settings)
    value = evaluation.value(learned.policy, greedy)
    above = difference(value, evaluation.value(clone.policy))
    weighted = FittedEvaluation(clone, held_out).weighted(learned.policy)
    return {
        **likeness,
        "value": value.value,
        "error": value.error,
        "above": above.value,
        "above, error": above.error,
        "again": FittedEvaluation(another, held_out, **settings)
        .value(learned.policy, greedy)
        .value,
        "weighted": weighted.value,
        "size": weighted.size,
    }
