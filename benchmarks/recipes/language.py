"""Everyday dialogue: supervised learning, and what PPO with a composite reward makes of it.

The question is that of RL4LMs (Ramamurthy et al. 2023) and of OpenRL's tutorial, which answer it on
DailyDialog with GPT-2: does reinforcement learning improve on the supervised model by every metric?
Here the model is a small one from scratch, trained on the data that the recipe is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from benchmarks.recipes.replies import metrics_of_run
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Column, Line, with_interval
from dialgym.io.files import write_atomically
from dialgym.language.tokenizers import train_bpe
from dialgym.tasks.daily_dialog.corpus import load_corpus

ID = "dialgym/DailyDialog-v0"
VOCABULARY = 2_048
EXAMPLES = 48_000
SUPERVISED: Mapping[str, Any] = {}
REINFORCED: Mapping[str, Any] = {}
"""Hyperparameters other than the built-in ones."""
EPISODES = 5_000


def runs(folder: Path, seeds: int, data: str | None = None) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    env_kwargs = {"data": data, "tokenizer": f"bpe:{tokenizer_of(folder, data)}"}
    tested = {**env_kwargs, "split": "test"}
    return [
        Run(method, ID, seed, folder / f"{method}-seed{seed}", train, env_kwargs, tested)
        for seed in range(seeds)
        for method, train in {"supervised": supervise, "PPO": reinforce}.items()
    ]


def tokenizer_of(folder: Path, data: str | None) -> Path:
    """The file of a byte-pair encoding of the training split, made where it is not there yet."""
    path = folder.resolve() / "bpe.json"
    if not path.is_file():
        bpe = train_bpe(load_corpus(data, "train").texts, VOCABULARY)
        write_atomically(path, lambda temporary: bpe.save(str(temporary)))
    return path


def supervise(run: Run) -> None:
    """Maximum likelihood on what people said, from scratch."""
    examples = dialgym.collect(
        ID,
        "reference",
        EXAMPLES,
        run.seed,
        path=run.folder.parent / f"examples-seed{run.seed}",
        env_kwargs={**run.settings, "rewards": {"length": 1.0}},  # quick, and not learned from
    )
    train_by("bc", run, hyperparameters=SUPERVISED, env_kwargs=run.settings, data=examples)


def reinforce(run: Run) -> None:
    """PPO with the default rewards, from the supervised model of the same seed."""
    begin = run.folder.parent / f"supervised-seed{run.seed}" / "model.zip"
    train_by("ppo", run, hyperparameters=REINFORCED, env_kwargs=run.settings, init_from=begin)


DIGITS = {
    "rouge1": 3,
    "rougeLsum": 3,
    "meteor": 3,
    "sacrebleu": 4,
    "intent": 3,
    "words": 1,
    "distinct2": 3,
}
"""The metrics that are shown, and how exactly."""
NAMES = ("ROUGE-1", "ROUGE-Lsum", "METEOR", "SacreBLEU", "intent", "words", "distinct-2")


def values(line: Line, name: str) -> np.ndarray:
    """A metric of each seed's model, (S,)."""
    return np.array([metrics_of_run(run, EPISODES)[name] for run in line.runs])


def column(name: str) -> Column:
    """The column of a metric: its mean over seeds, with an interval."""
    return lambda line: with_interval(values(line, name), DIGITS[name])


def gains(table: Sequence[Line]) -> str:
    """Gain of PPO over the supervised model of the same seed, as a sentence."""
    supervised, reinforced = table
    added = [
        f"{title} {with_interval(values(reinforced, name) - values(supervised, name), digits)}"
        for title, (name, digits) in zip(NAMES, DIGITS.items(), strict=True)
    ]
    return f"PPO less the supervised model of the same seed: {', '.join(added)}.\n"


COLUMNS = {title: column(name) for title, name in zip(NAMES, DIGITS, strict=True)}
MORE = gains
BASE = ("method", "seeds", "mean return")
NOTE = f"""\
Means over seeds (of examples, weights and learning); in brackets 95 % intervals (Student's t over
the seeds' means). Each model replies in the same {EPISODES:,} places of the test split, tokens
drawn from the whole distribution as in training, at most 20. ROUGE, METEOR and SacreBLEU (of the
whole set) compare with what the person said; intent is the share of replies that the classifier of
the reward takes for the person's dialogue act; words are words of a reply. The return is that of
the reward, on {EPISODES:,} other dialogues of the split.
"""
