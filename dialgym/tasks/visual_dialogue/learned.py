"""A learned guesser: a network that tells an image's features from the talk about it.

In the original (Das et al., 2017, "Learning Cooperative Visual Dialog Agents with Deep
Reinforcement Learning") a recurrent network regresses the features of the image from caption and
rounds, and images are ranked by how far they are from what it says. Here a text is a bag of hashed
n-grams, and a dialogue the sum of its encoded texts: the order of the rounds does not matter, as it
does not matter for what is true of an image.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from dialgym.errors import one_of
from dialgym.io.checksums import check_folder
from dialgym.optional import require
from dialgym.tasks.visual_dialogue.guessers import Held, by_distance
from dialgym.tasks.visual_dialogue.hashing import words_of
from dialgym.tasks.visual_dialogue.pool import Pool

if TYPE_CHECKING:
    from torch import Tensor

SETTINGS, WEIGHTS = "guesser.json", "guesser.safetensors"
WHAT = "a learned guesser"
BATCH = 512  # dialogues in one pass


def terms_of_caption(caption: str) -> list[str]:
    """Its words and pairs of neighbouring words."""
    words = words_of(caption)
    return [f"c:{word}" for word in words] + [f"c:{a} {b}" for a, b in pairwise(words)]


def terms_of_round(question: str, answer: str) -> list[str]:
    """Words and pairs of the answer, and those of the question together with the answer's start.

    What a question means for the image depends on its answer, so that no term of a question
    stands alone.
    """
    asked, said = words_of(question), words_of(answer)
    head = said[0] if said else ""
    pairs = [f"{a} {b}" for a, b in pairwise(asked)]
    own = [f"a:{word}" for word in said] + [f"a:{a} {b}" for a, b in pairwise(said)]
    return own + [f"{term}={head}" for term in (*asked, *pairs)] + [f"{' '.join(asked)}={head}"]


def encode(held: Held, buckets: int) -> list[list[int]]:
    """The places of the terms of a dialogue's caption and of each of its rounds."""
    texts = [terms_of_caption(held.caption), *(terms_of_round(*turn) for turn in held.history)]
    return [[crc32(term.encode()) % buckets for term in terms] for terms in texts]


def predict(weights: Mapping[str, "Tensor"], dialogues: Sequence[Sequence[list[int]]]) -> "Tensor":
    """The features (m, F) that m encoded dialogues tell of, of length 1 as those of images.

    With e the sum of the embeddings of a text's terms, ``h = relu(A e + a)``, the sum s of a
    dialogue's h, and ``g = relu(B s + b)``, they are ``C g + c`` over its length.
    """
    torch = require("torch", "agents", WHAT)
    functional = torch.nn.functional
    device = weights["terms"].device
    texts = [text for dialogue in dialogues for text in dialogue]
    sizes = [len(text) for text in texts]
    ids = torch.tensor([place for text in texts for place in text], device=device)
    starts = torch.tensor([0, *sizes[:-1]], device=device).cumsum(0)
    bags = functional.embedding_bag(ids.long(), weights["terms"], starts, mode="sum")  # (T, W)
    told = functional.linear(bags, weights["text.weight"], weights["text.bias"]).relu()
    lengths = torch.tensor([len(dialogue) for dialogue in dialogues], device=device)
    owners = torch.arange(len(dialogues), device=device).repeat_interleave(lengths)  # (T,)
    sums = told.new_zeros(len(dialogues), told.shape[1]).index_add(0, owners, told)
    hidden = functional.linear(sums, weights["hidden.weight"], weights["hidden.bias"]).relu()
    found = functional.linear(hidden, weights["out.weight"], weights["out.bias"])
    return functional.normalize(found, dim=1)


class LearnedGuesser:
    """Ranks the images of a pool by their distance from what a network says: ``learned:PATH``.

    Args:
        pool: the images.
        path: a folder that `dialgym train guesser` wrote.
        device: where the network computes: "cpu", "cuda" or "auto".

    Raises:
        ValueError: there is no such folder, it is none of a guesser, or one of other features.
        ImportError: PyTorch or safetensors is missing.
    """

    def __init__(self, pool: Pool, path: str, device: str = "cpu") -> None:
        one_of("device", device, ("cpu", "cuda", "auto"), WHAT)
        self.pool, self.path, self.device = pool, str(path), device
        self._load()

    def _load(self) -> None:
        torch = require("torch", "agents", WHAT)
        self._settings, weights = read_guesser(Path(self.path).expanduser())
        length = weights["out.bias"].shape[0]
        if length != self.pool.features.shape[1]:
            raise ValueError(
                f"guesser {self.path!r}: it tells {length} features, the images have "
                f"{self.pool.features.shape[1]}. Train one for these images."
            )
        cuda = self.device == "cuda" or (self.device == "auto" and torch.cuda.is_available())
        self._weights = {n: w.to("cuda" if cuda else "cpu") for n, w in weights.items()}

    def imagine(self, dialogues: Sequence[Held]) -> np.ndarray:
        """(m, F) float32, the features that the dialogues tell of."""
        torch = require("torch", "agents", WHAT)
        buckets = int(self._settings["buckets"])
        parts = []
        with torch.inference_mode():
            for start in range(0, len(dialogues), BATCH):
                encoded = [encode(held, buckets) for held in dialogues[start : start + BATCH]]
                parts.append(predict(self._weights, encoded).float().cpu().numpy())
        return np.concatenate(parts) if parts else np.zeros((0, self.pool.features.shape[1]))

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """See `Guesser`."""
        images = np.array([held.image for held in dialogues], np.int64)
        return by_distance(self.imagine(dialogues), self.pool.features, images)

    def __getstate__(self) -> dict[str, Any]:
        """Without the network, which the other process reads again."""
        return {"pool": self.pool, "path": self.path, "device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._load()


def read_guesser(folder: Path) -> tuple[dict[str, Any], dict[str, "Tensor"]]:
    """The settings and weights of a guesser.

    Raises:
        ValueError: there is none in that folder, or it is damaged.
    """
    safetensors = require("safetensors.torch", "agents", WHAT)
    if not (folder / SETTINGS).is_file() or not (folder / WEIGHTS).is_file():
        raise ValueError(
            f"guesser {str(folder)!r}: expected a folder with {SETTINGS} and {WEIGHTS}. Train one "
            "with `dialgym train guesser`."
        )
    check_folder(folder)
    try:
        settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        weights = safetensors.load_file(folder / WEIGHTS)
        for name, weight in weights.items():
            if not bool(weight.isfinite().all()):
                raise ValueError(f"{name} has weights that are NaN or infinite")
        predict(weights, [encode(Held("a", (), 0), int(settings["buckets"]))])
    except Exception as error:  # whatever damaged files lead to
        raise ValueError(f"guesser {str(folder)!r}: damaged ({error}). Train it again.") from error
    return settings, weights
