"""Neural models as rewards, loaded late: classifiers, reward models, sentence embeddings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dialgym.errors import finite_number, one_of, whole_number
from dialgym.io.cache import LRU
from dialgym.io.hub import model_folder, pretrained
from dialgym.optional import require
from dialgym.rewards.base import Reply, Reward
from dialgym.rewards.overlap import references

DTYPES = ("float32", "bfloat16", "float16")
SIZES = {"batch_size": 1, "max_length": 1, "turns": 0}
"""Settings that are whole numbers, and the least of each."""
UNLIMITED = 10**9
"""Tokenizers without a limit say that it is larger than this."""
EMBEDDINGS_KEPT = 2**14


def pair_of(reply: Reply, turns: int | None = None) -> tuple[str, str]:
    """Text that a model reads: the last `turns` utterances before the reply, or all, joined by
    line breaks, and the reply."""
    skipped = 0 if turns is None else max(len(reply.context) - turns, 0)
    context = reply.context[skipped:]
    return "\n".join(context), reply.text


@dataclass(frozen=True, kw_only=True)
class ClassifierReward(Reward):
    """A reward that a sequence classifier gives; its settings, which subclasses add to.

    Attributes:
        model: a folder, or ``hf:NAME`` or ``hf:NAME@REVISION`` of the Hugging Face hub.
        device: where it runs; ``auto`` is CUDA where there is one.
        batch_size: replies of one call of the model.
        max_length: tokens it reads of a pair, its whole window by default; see `encoded`.
        dtype: of its weights: ``float32``, ``bfloat16`` or ``float16``.
    """

    model: str | None = None
    device: str = "auto"
    batch_size: int = 32
    max_length: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        one_of("dtype", self.dtype, DTYPES, f"reward {self.name!r}")
        for size, least in SIZES.items():
            value = getattr(self, size, None)
            if value is not None:
                whole_number(size, value, f"reward {self.name!r}", least)

    @cached_property
    def classifier(self) -> "SequenceClassifier":
        """The model, loaded."""
        assert self.model is not None
        classifier = SequenceClassifier(
            self.model, self.name, self.device, self.batch_size, self.max_length, self.dtype
        )
        self._check(classifier)
        return classifier

    def _check(self, classifier: "SequenceClassifier") -> None:
        """Raise a ValueError where the outputs of the model are not what the reward needs."""
        if len(classifier.labels) < 2 and not classifier.is_multi_label:
            raise ValueError(
                f"reward {self.name!r} expects a model with an output for each of two labels or "
                f"more; {self.model!r} has one. The reward 'learned' takes such a model."
            )


class SequenceClassifier:
    """A loaded sequence classifier with its tokenizer.

    Raises:
        ValueError: there is no such model, or it is no classifier.
    """

    def __init__(
        self,
        model: str,
        name: str,
        device: str,
        batch_size: int,
        max_length: int | None,
        dtype: str = "float32",
    ) -> None:
        torch = require("torch", "agents", f"a model for reward {name!r}")
        self.tokenizer, self.model = _load(model, name, dtype)
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model.to(device).eval()
        self.batch_size = batch_size
        self.max_length = min(_windows(self.tokenizer, self.model, max_length), default=None)
        _set_padding(self.tokenizer, self.model, model)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its outputs, in order."""
        names = self.model.config.id2label
        return tuple(names[i] for i in range(self.model.config.num_labels))

    def logits(self, replies: Sequence[Reply], turns: int | None = None) -> np.ndarray:
        """(k, C) float64; of the context the last `turns` utterances are read, 0 for none."""
        rows = self._encode(replies, turns)
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]["input_ids"]))
        logits = np.zeros((len(rows), self.model.config.num_labels))
        for start in range(0, len(order), self.batch_size):
            indices = order[start : start + self.batch_size]
            logits[indices] = self._forward([rows[index] for index in indices])
        return logits

    def probabilities(self, replies: Sequence[Reply], turns: int | None = None) -> np.ndarray:
        """(k, C) float64: each output by itself where the model says so, else summing to 1."""
        logits = self.logits(replies, turns)
        if self.is_multi_label:
            return np.asarray(1 / (1 + np.exp(-logits)))
        odds = np.exp(logits - logits.max(1, keepdims=True, initial=-np.inf))
        return np.asarray(odds / odds.sum(1, keepdims=True))

    @property
    def is_multi_label(self) -> bool:
        """Return True if several labels may hold at once."""
        return bool(self.model.config.problem_type == "multi_label_classification")

    def _encode(self, replies: Sequence[Reply], turns: int | None) -> list[dict[str, list[int]]]:
        if not replies:
            return []
        contexts, texts = zip(*(pair_of(reply, turns) for reply in replies))
        read = [texts] if turns == 0 else [contexts, texts]
        rows = encoded(self.tokenizer, *read, most=self.max_length)
        return [row if row["input_ids"] else self._nothing(row) for row in rows]

    def _nothing(self, row: dict[str, list[int]]) -> dict[str, list[int]]:
        """Padding to be read, where a tokenizer makes no token of an empty text."""
        padding = [self.tokenizer.pad_token_id]
        return {**{key: [0] for key in row}, "input_ids": padding, "attention_mask": [1]}

    def _forward(self, rows: list[dict[str, list[int]]]) -> np.ndarray:
        torch = require("torch", "agents", "a model")
        batch = self.tokenizer.pad(rows, return_tensors="pt").to(self.model.device)
        with torch.inference_mode():
            logits = self.model(**batch).logits
        return np.asarray(logits.double().cpu().numpy())


def encoded(tokenizer: Any, *texts: Sequence[str], most: int | None) -> list[dict[str, list[int]]]:
    """The tokens of replies, or of contexts and replies, without padding.

    Of more than `most` tokens the context loses its first ones. A reply that leaves the context no
    room is cut too: then the longer of both loses its first ones until they are of one length.

    Args:
        tokenizer: of `transformers`, which cuts from the left.
        texts: the replies, or the contexts and the replies.
        most: of one row, what separates the texts included; None cuts nothing.
    """

    def rows_of(cut: str, rows: Sequence[int]) -> list[dict[str, list[int]]]:
        # in one call: of a single pair, transformers leaves out an empty second text
        read = [[column[row] for row in rows] for column in texts]
        table = tokenizer(*read, truncation=cut if most else False, max_length=most)
        return [dict(zip(table, columns)) for columns in zip(*table.values())]

    found = rows_of("longest_first", range(len(texts[0])))
    full = [row for row, columns in enumerate(found) if len(columns["input_ids"]) == most]
    if most is None or len(texts) == 1 or not full:
        return found
    alone = tokenizer(
        [""] * len(full), [texts[1][row] for row in full], truncation=True, max_length=most
    )
    fit = [row for row, ids in zip(full, alone["input_ids"]) if len(ids) < most]
    for row, columns in zip(fit, rows_of("only_first", fit) if fit else ()):
        found[row] = columns
    return found


def _load(path: str, name: str, dtype: str) -> tuple[Any, Any]:
    require("transformers", "agents", f"a model for reward {name!r}")
    folder = model_folder(path, f"the model of reward {name!r}")
    try:
        tokenizer = pretrained("AutoTokenizer", folder, truncation_side="left")
        model, info = pretrained(
            "AutoModelForSequenceClassification", folder, output_loading_info=True, dtype=dtype
        )
    except Exception as error:  # broken weights have errors of their own
        raise ValueError(
            f"reward {name!r} could not load the model {path!r}: expected a sequence classifier "
            f"with its tokenizer; {' '.join(str(error).split())}"
        ) from error
    if info["missing_keys"]:
        raise ValueError(
            f"reward {name!r}: {path!r} is no trained classifier, it lacks "
            f"{', '.join(sorted(info['missing_keys'])[:3])}. Name one with a classification head."
        )
    return tokenizer, model


def _windows(tokenizer: Any, model: Any, wanted: int | None) -> Iterator[int]:
    """Every limit on the tokens of one input."""
    if tokenizer.model_max_length < UNLIMITED:
        yield tokenizer.model_max_length
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions:
        table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)  # RoBERTa counts positions from behind it
        yield positions if padding is None else positions - padding - 1
    if wanted:
        yield wanted


def _set_padding(tokenizer: Any, model: Any, path: str) -> None:
    """A padding token for tokenizers that have none: the end of a text, as is the custom."""
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(f"the tokenizer of {path!r} has no padding token. Give it one.")
        tokenizer.pad_token = tokenizer.eos_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id


@dataclass(frozen=True, kw_only=True)
class LearnedReward(ClassifierReward):
    """The output of a reward model for the pair of context and reply, Stiennon et al. (2020).

    Attributes:
        turns: how many utterances before the reply it reads; all by default.
        sigmoid: 1 / (1 + exp(-x)) of the output x, from 0 to 1.
        clip: lowest and highest score; none by default, and the bounds are infinite then.
        values: the score of an output up to 0, and of one above, such as (-1, 1) of a model that
            learned labels (`threshold`); none by default.
    """

    name: ClassVar[str] = "learned"
    turns: int | None = None
    sigmoid: bool = False
    clip: Sequence[float] | None = None
    values: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is None:
            raise ValueError("reward 'learned' needs `model`, a folder or hf:NAME of the hub.")
        if self.values is not None:
            self._check_values(self.values)
            return
        low, high = (0.0, 1.0) if self.sigmoid else (-np.inf, np.inf)
        if self.clip is not None:
            if len(self.clip) != 2 or not all(isinstance(x, Real) and x == x for x in self.clip):
                raise ValueError(
                    f"clip of reward 'learned' must be two numbers; got {self.clip!r}."
                )
            low, high = max(low, float(self.clip[0])), min(high, float(self.clip[1]))
        if not low < high:
            raise ValueError(f"clip of reward 'learned' leaves nothing; got {self.clip!r}.")
        object.__setattr__(self, "bounds", (low, high))

    def _check_values(self, values: Sequence[float]) -> None:
        """Set the bounds; raise ValueError for anything but two numbers, and nothing beside."""
        if len(values) != 2 or self.sigmoid or self.clip is not None:
            raise ValueError(
                "values of reward 'learned' must be two numbers, without sigmoid and clip; got "
                f"values={values!r}, sigmoid={self.sigmoid}, clip={self.clip!r}."
            )
        found = [finite_number("values of reward 'learned'", value) for value in values]
        object.__setattr__(self, "bounds", (min(found), max(found)))

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) within the bounds.

        Raises:
            ValueError: the model cannot be loaded, or has several outputs.
        """
        outputs = self.classifier.logits(replies, self.turns)[:, 0]
        if self.values is not None:
            return np.where(outputs > 0, *map(float, self.values[::-1]))
        scores = 1 / (1 + np.exp(-outputs)) if self.sigmoid else outputs
        return np.asarray(np.clip(scores, *self.bounds) if self.clip is not None else scores)

    def _check(self, classifier: SequenceClassifier) -> None:
        if len(classifier.labels) != 1:
            raise ValueError(
                f"reward 'learned' expects a model with one output; {self.model!r} has "
                f"{len(classifier.labels)}: {', '.join(classifier.labels)}. Train one by "
                "num_labels=1."
            )


@dataclass(frozen=True, kw_only=True)
class Similarity(Reward):
    """The cosine of sentence embeddings, Reimers and Gurevych (2019), of the nearest text.

    Attributes:
        model: of sentence-transformers: a folder, or ``hf:NAME`` or ``hf:NAME@REVISION``.
        to: ``references``, or ``context``: the last utterance before the reply.
        device: where the model runs; ``auto`` is CUDA where there is one.
        batch_size: texts of one call of the model.
    """

    name: ClassVar[str] = "similarity"
    bounds = (-1.0, 1.0)
    model: str = "hf:sentence-transformers/all-MiniLM-L6-v2"
    to: str = "references"
    device: str = "auto"
    batch_size: int = 32

    def __post_init__(self) -> None:
        one_of("to", self.to, ("references", "context"), "reward 'similarity'")
        whole_number("batch_size", self.batch_size, "reward 'similarity'")

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from -1 to 1; 0 where nothing was said before.

        Raises:
            ValueError: a reply has no references, where those are asked for.
        """
        others = [self._others(reply) for reply in replies]
        texts = [text for reply, those in zip(replies, others) for text in (reply.text, *those)]
        rows = self._embeddings.get_many(texts, lambda new: self._embed([texts[i] for i in new]))
        table = dict(zip(texts, rows))
        cosines = [
            max((float(table[reply.text] @ table[text]) for text in those), default=0.0)
            for reply, those in zip(replies, others)
        ]
        return np.clip(np.array(cosines, np.float64), *self.bounds)

    def _others(self, reply: Reply) -> Sequence[str]:
        return references(reply, self.name) if self.to == "references" else reply.context[-1:]

    def _embed(self, texts: list[str]) -> Sequence[np.ndarray]:
        """Embeddings of length 1, float64."""
        rows = self._encoder.encode(
            texts, batch_size=self.batch_size, convert_to_numpy=True, show_progress_bar=False
        ).astype(np.float64)
        return list(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12))

    @cached_property
    def _embeddings(self) -> LRU[np.ndarray]:
        return LRU(EMBEDDINGS_KEPT)

    @cached_property
    def _encoder(self) -> Any:
        package = require("sentence_transformers", "rewards", "reward 'similarity'")
        device = None if self.device == "auto" else self.device
        folder = str(model_folder(self.model, "the model of reward 'similarity'"))
        try:
            return package.SentenceTransformer(
                folder, device=device, trust_remote_code=False, local_files_only=True
            )
        except Exception as error:  # broken weights have errors of their own
            raise ValueError(
                f"reward 'similarity' could not load the model {self.model!r}: expected one of "
                f"sentence-transformers; {' '.join(str(error).split())}"
            ) from error
