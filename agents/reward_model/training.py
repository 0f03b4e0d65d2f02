"""`train_reward_model`: data to a folder of `transformers`, with checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from stable_baselines3.common.utils import get_device

from agents.reward_model.fit import RewardModelTraining
from agents.reward_model.network import make_network, quiet
from agents.reward_model.pairs import Source, read_examples
from agents.reward_model.reward_model_config import RewardModelConfig
from agents.training.run import torch_threads
from dialgym.io.checksums import check, remove_checked, write_checked, write_sums
from dialgym.io.files import write_folder_atomically, write_text
from dialgym.io.hub import commits

METRICS = "metrics.json"


class RewardModel(NamedTuple):
    """A trained reward model.

    Attributes:
        folder: loads with `AutoModelForSequenceClassification` and `AutoTokenizer`.
        metrics: what `metrics.json` says: of the held-out examples `loss`, and `accuracy` (share of
            pairs in the right order) or `pearson` and `spearman`; `seed`, counts, and the history.
    """

    folder: Path
    metrics: Mapping[str, Any]


def train_reward_model(
    data: Source | Sequence[Source],
    out: str | Path,
    base: str | Path | None = None,
    tokenizer: str = "bpe",
    seed: int = 0,
    device: str = "auto",
    bf16: bool = False,
    threads: int | None = 1,
    checkpoint_every: int | None = None,
    resume: bool = False,
    progress_bar: bool = True,
    **settings: Any,
) -> RewardModel:
    """Learn a scalar reward of (context, reply), and write it as a folder of `transformers`.

    Scores r are learned by least squares, (f(c, y) - r)^2 over the variance of r; preferences by
    -log sigmoid(f(c, y+) - f(c, y-)) (Bradley and Terry 1952; Ouyang et al. 2022, equation 1). The
    model of the epoch with the lowest held-out loss is kept. Outputs are in units of the scores.

    Args:
        data: JSONL, CSV or stored dialogues; see `agents.reward_model.pairs.read_examples`.
        out: the folder, written as a whole at the end; it may exist if it is a reward model.
        base: a model to begin with: its folder, ``hf:NAME`` or ``hf:NAME@REVISION``; None for a
            small encoder from scratch.
        tokenizer: of one from scratch: "bpe" (built in), "bpe:PATH" or "hf:NAME".
        seed: of new weights, the split, the order of the data and dropout.
        device: "cpu", "cuda" or "auto".
        bf16: compute in bfloat16 where that is safe.
        threads: PyTorch threads; None leaves what PyTorch has.
        checkpoint_every: steps from one checkpoint, ``.NAME.checkpoint.pt`` beside `out`, to the
            next; None writes one after each epoch, 0 none.
        resume: go on from there, exactly as if the run had not been interrupted; without a
            checkpoint, begin.
        progress_bar: show one.
        settings: hyperparameters; see `agents.reward_model.reward_model_config.RewardModelConfig`.

    Raises:
        FileNotFoundError: there is no such data.
        ValueError: data, model or hyperparameters that cannot be; a folder with other things; the
            run to be resumed had other settings; or the loss is no longer finite.
        ImportError: a package is missing.
    """
    chosen, out = RewardModelConfig.of(settings), Path(out)
    if checkpoint_every is not None and checkpoint_every < 0:
        raise ValueError(f"checkpoint_every: expected 0 (never) or more, got {checkpoint_every}")
    check_free(out)
    examples = read_examples(data)
    base = None if base is None else str(base)
    network = make_network(base, tokenizer, chosen, seed)
    network.model.to(get_device(device))
    rate = chosen.rate(base is not None)
    run = RewardModelTraining(network, examples, chosen, rate, seed, bf16)
    state = {"base": base, "tokenizer": tokenizer if base is None else None, "seed": seed}
    state |= {"bf16": bf16, **chosen.as_dict(), "examples": examples.digest()}
    checkpoint = RewardModelCheckpoint(
        out.with_name(f".{out.name}.checkpoint.pt"), state, checkpoint_every
    )
    if resume:
        checkpoint.restore(run)
    with torch_threads(threads):
        run.learn(checkpoint.save, progress_bar)
    metrics = {**run.metrics(), "settings": state, "hub": commits()}
    write_folder_atomically(out, lambda folder: _write(run, metrics, folder))
    remove_checked(checkpoint.path)
    return RewardModel(out, metrics)


def check_free(out: Path) -> None:
    """Raises ValueError where `out` is anything but an earlier reward model, or nothing."""
    if out.exists() and not (out / METRICS).is_file() and (out.is_file() or any(out.iterdir())):
        raise ValueError(
            f"reward model: {str(out)!r} exists and is no reward model; expected a new folder, or "
            "one to replace. Choose another name."
        )


def _write(run: RewardModelTraining, metrics: Mapping[str, Any], folder: Path) -> None:
    run.use_best()
    with quiet():
        run.network.model.save_pretrained(folder)
        run.network.tokenizer.save_pretrained(folder)
    write_text(folder / METRICS, json.dumps(metrics, indent=2) + "\n")
    write_sums(folder)


class RewardModelCheckpoint:
    """The state of a run in one file, without pickled code.

    Args:
        path: of the file; it is replaced atomically.
        settings: of the run, which a resumed one must share.
        every: steps from one to the next; None after each epoch, 0 never.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], every: int | None) -> None:
        self.path, self.settings, self.every = path, dict(settings), every

    def save(self, run: RewardModelTraining) -> None:
        """Write, if it is time to."""
        every = run.steps if self.every is None else self.every
        if every and run.step % every == 0:
            state = {"settings": self.settings, "run": run.state()}
            write_checked(self.path, lambda part: torch.save(state, part))

    def restore(self, run: RewardModelTraining) -> None:
        """Set the run to where the file left it, if there is one.

        Raises:
            ValueError: it is of a run with other settings, or no checkpoint.
        """
        if not self.path.is_file():
            return
        check(self.path)
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
            old = state["settings"]
        except Exception as error:  # whatever a damaged file leads to
            raise ValueError(f"{str(self.path)!r} is no checkpoint ({error}); remove it") from error
        changed = [k for k in self.settings if old.get(k) != self.settings[k]]
        if changed:
            differences = ", ".join(f"{k}: {old.get(k)!r} -> {self.settings[k]!r}" for k in changed)
            raise ValueError(
                f"cannot resume {str(self.path)!r} with other settings ({differences}). "
                "Give the same ones, or another folder for a new model."
            )
        run.restore(state["run"])
