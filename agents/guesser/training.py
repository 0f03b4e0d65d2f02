"""`train_guesser`: dialogues about images to a folder that ``guesser="learned:PATH"`` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from stable_baselines3.common.utils import get_device
from torch import Tensor
from torch.nn.functional import cross_entropy

from agents.guesser.examples import played, said_by_people, task_of
from agents.training.run import torch_threads
from dialgym.errors import finite_number, one_of, unknown, whole_number
from dialgym.io.checksums import write_sums
from dialgym.io.files import write_folder_atomically, write_text
from dialgym.registry import Environment
from dialgym.tasks.visual_dialogue.guessers import Held, by_distance
from dialgym.tasks.visual_dialogue.learned import SETTINGS, WEIGHTS, encode, predict

Encoded = list[list[int]]
PASS = 512  # dialogues measured at a time
LOSSES = ("contrastive", "regression")
SHARPNESS = 20.0


class Guesser(NamedTuple):
    """A trained guesser.

    Attributes:
        folder: what ``guesser="learned:FOLDER"`` reads.
        metrics: of dialogues about images that were held out, as `guesser.json` says: the mean
            squared `distance` of told and true features, and `distance_of_mean`, that of their
            mean; the mean `percentiles` by the caption and after each round, and `rank`, the mean
            of these.
    """

    folder: Path
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class GuesserConfig:
    """Size and training of a guesser.

    Attributes:
        epochs: passes over the dialogues; the best one is kept.
        batch_size: dialogues of a gradient step, each up to a round drawn again.
        learning_rate, weight_decay: of AdamW.
        width: of all layers.
        buckets: places that terms are hashed into.
        loss: "contrastive" or "regression"; see `train_guesser`.
        held_out: share of the images that are held out.
    """

    epochs: int = 30
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    width: int = 256
    buckets: int = 2**14
    loss: str = "contrastive"
    held_out: float = 0.1

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> GuesserConfig:
        """Those that are given, the others as they are by default.

        Raises:
            ValueError: an unknown name, or a number that cannot be.
        """
        known = {field.name: field.type for field in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise unknown("hyperparameter", name, known, "a guesser")
            if name == "loss":
                one_of("loss", value, LOSSES, "a guesser")
            elif known[name] == "int":
                whole_number(name, value, "a guesser")
            elif finite_number(f"{name} of a guesser", value) < 0:
                raise ValueError(f"{name} of a guesser must be 0 or more; got {value!r}.")
        found = cls(**given)
        if not 0 < found.held_out < 1:
            raise ValueError(f"held_out of a guesser must be between 0 and 1; got {found.held_out}")
        return found


def train_guesser(
    env: Environment,
    out: str | Path,
    policy: str | None = None,
    dialogues: int = 5000,
    seed: int = 0,
    device: str = "auto",
    threads: int | None = 1,
    env_kwargs: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Guesser:
    """Learn to tell an image's features from a dialogue, and write the guesser as a folder.

    With p what the network tells of a dialogue, cut off after a number of rounds that is drawn
    evenly, and f_i the features of the images that are learned from, both of length 1, the loss of
    a dialogue about image k is

    - ``regression``: |p - f_k|^2, as in the original (Das et al. 2017, section 4);
    - ``contrastive``: -log softmax_k(-SHARPNESS |p - f_i|^2 / 2), as the image is to be found among
      others (Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding"). It
      ranks better, but its distances mean little.

    Args:
        env: an id of visual dialogue, which says what images there are.
        out: the folder, written as a whole at the end; it may exist if it is a guesser.
        policy: a questioner to play dialogues; None for those that people had about the images.
        dialogues: how many are played.
        seed: of dialogues, held-out images, weights and order.
        device: "cpu", "cuda" or "auto".
        threads: PyTorch threads; None leaves what PyTorch has.
        env_kwargs: settings of the task, such as `pool`.
        settings: hyperparameters; see `GuesserConfig`.

    Raises:
        ValueError: an argument that cannot be, or a folder with other things.
    """
    chosen, folder = GuesserConfig.of(settings), Path(out)
    check_free(folder)
    task = task_of(env, dict(env_kwargs or {}))
    if policy is None:
        talk = said_by_people(task)
    else:
        talk = played(task, policy, whole_number("dialogues", dialogues, "a guesser"), seed)
    with torch_threads(threads):
        run = GuesserTraining(talk, task.pool.features, chosen, seed, get_device(device))
        for _ in range(chosen.epochs):
            run.epoch()
    weights, metrics = run.best()
    state = {**asdict(chosen), "policy": policy, "seed": seed, "metrics": metrics}

    def write(place: Path) -> None:
        save_file(weights, place / WEIGHTS)
        write_text(place / SETTINGS, json.dumps(state, indent=2) + "\n")
        write_sums(place)

    write_folder_atomically(folder, write)
    return Guesser(folder, metrics)


def check_free(out: Path) -> None:
    """Raises ValueError where `out` is anything but an earlier guesser, or nothing."""
    if out.exists() and not (out / SETTINGS).is_file() and (out.is_file() or any(out.iterdir())):
        raise ValueError(
            f"guesser: {str(out)!r} exists and is none; expected a new folder, or one to replace. "
            "Choose another name."
        )


class GuesserTraining:
    """A training run.

    Args:
        talk: dialogues.
        features: (n, F) of the pool.
        settings: hyperparameters.
        seed: of everything.
        device: where it computes.

    Raises:
        ValueError: there are dialogues of less than two images.
    """

    def __init__(
        self,
        talk: Sequence[Held],
        features: np.ndarray,
        settings: GuesserConfig,
        seed: int,
        device: torch.device,
    ) -> None:
        self.settings, self.seed, self.features = settings, seed, features
        out = held_out_images(talk, settings.held_out, seed)
        self.learned = [held for held in talk if held.image not in out]
        self.tested = [held for held in talk if held.image in out]
        self._encoded = [encode(held, settings.buckets) for held in self.learned]
        self._targets = torch.from_numpy(features).to(device)
        own = sorted({held.image for held in self.learned})
        self._among = self._targets[own]  # the images that it may know
        self._places = {image: place for place, image in enumerate(own)}
        self.weights = new_weights(settings, features.shape[1], seed, device)
        self._optimizer = torch.optim.AdamW(
            self.weights.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.history: list[dict[str, Any]] = []
        self._kept: dict[str, Tensor] = {}

    def epoch(self) -> None:
        """Learn from all dialogues once, and measure."""
        rng = np.random.default_rng([self.seed, len(self.history)])
        order, size = rng.permutation(len(self.learned)), self.settings.batch_size
        losses = [self._step(order[i : i + size], rng) for i in range(0, len(order), size)]
        found = {"train_loss": float(np.mean(losses)), **self._measure()}
        self.history.append(found)
        if found["rank"] == max(past["rank"] for past in self.history):
            self._kept = {n: w.detach().cpu().clone() for n, w in self.weights.items()}

    def _step(self, rows: np.ndarray, rng: np.random.Generator) -> float:
        cut = [self._encoded[row] for row in rows.tolist()]
        cut = [texts[: 1 + rng.integers(len(texts))] for texts in cut]
        images = [self.learned[row].image for row in rows.tolist()]
        loss = self._loss(predict(self.weights, cut), images)
        if not bool(torch.isfinite(loss)):
            raise ValueError(
                f"guesser: the loss is {float(loss)} in epoch {len(self.history) + 1}; lower "
                f"learning_rate, which is {self.settings.learning_rate:g}."
            )
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return float(loss.detach())

    def _loss(self, told: Tensor, images: Sequence[int]) -> Tensor:
        if self.settings.loss == "regression":
            return (told - self._targets[images]).square().sum(1).mean()
        places = torch.tensor([self._places[image] for image in images], device=told.device)
        # all have the length 1, so that half the squared distance is 1 - p f
        return cross_entropy(SHARPNESS * told @ self._among.T, places)

    def _measure(self) -> dict[str, Any]:
        """Distance and percentiles of the dialogues that are held out, by rounds."""
        rounds = min(len(held.history) for held in self.tested)
        distances, percentiles = [], []
        images = np.array([held.image for held in self.tested])
        for count in range(rounds + 1):
            cut = [held._replace(history=held.history[:count]) for held in self.tested]
            found = self._imagined(cut)
            distances.append(float(np.square(found - self.features[images]).sum(1).mean()))
            percentiles.append(float(by_distance(found, self.features, images).mean()))
        rank = float(np.mean(percentiles))
        return {"rank": rank, "distance": float(np.mean(distances)), "percentiles": percentiles}

    @torch.no_grad()
    def _imagined(self, talk: Sequence[Held]) -> np.ndarray:
        encoded = [encode(held, self.settings.buckets) for held in talk]
        parts = [encoded[i : i + PASS] for i in range(0, len(encoded), PASS)]
        return np.concatenate([predict(self.weights, part).cpu().numpy() for part in parts])

    def best(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weights and metrics of the epoch with the best held-out rank."""
        mean = self.features[[held.image for held in self.learned]].mean(0)
        tested = self.features[[held.image for held in self.tested]]
        place = int(np.argmax([past["rank"] for past in self.history]))
        return self._kept, {
            "dialogues": len(self.learned),
            "held_out": len(self.tested),
            "epoch": place + 1,
            **self.history[place],
            "distance_of_mean": float(np.square(tested - mean).sum(1).mean()),
        }


def held_out_images(talk: Sequence[Held], share: float, seed: int) -> set[int]:
    """About that share of the images that are talked about; at least one, and not all.

    Raises:
        ValueError: there is only one image, or none.
    """
    images = sorted({held.image for held in talk})
    if len(images) < 2:
        raise ValueError(
            f"guesser: expected dialogues about two images or more; got {len(talk)} about "
            f"{len(images)}. Give more data."
        )
    count = min(max(round(share * len(images)), 1), len(images) - 1)
    return set(np.random.default_rng(seed).permutation(images)[:count].tolist())


def new_weights(
    settings: GuesserConfig, features: int, seed: int, device: torch.device
) -> dict[str, Tensor]:
    """Weights drawn for `predict`; PyTorch's generator is left as it was."""
    width = settings.width
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = {
            "text": torch.nn.Linear(width, width),
            "hidden": torch.nn.Linear(width, width),
            "out": torch.nn.Linear(width, features),
        }
        weights = {"terms": 0.1 * torch.randn(settings.buckets, width)}
    for name, layer in layers.items():
        weights |= {f"{name}.weight": layer.weight.data, f"{name}.bias": layer.bias.data}
    return {name: weight.to(device).requires_grad_() for name, weight in weights.items()}
