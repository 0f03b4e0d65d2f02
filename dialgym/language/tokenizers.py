"""Tokenizers: text to token ids and back, one protocol for characters, words and Hugging Face.

Ids 0-4 are the same everywhere: PAD, ``<end>``, ``<unk>`` and the two speaker tags. Text tokens
follow. `encode` never yields a special token but ``<unk>``, so no text can forge a turn; a special
token inside an utterance decodes to U+FFFD.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dialgym.errors import unknown
from dialgym.language.utterances import UNKNOWN
from dialgym.optional import require

PAD, END, UNK = 0, 1, 2
TAGS = {"system": 3, "user": 4}
SPECIALS = ("<pad>", "<end>", "<unk>", "<system>", "<user>")
FIRST_TEXT = len(SPECIALS)

Ids = np.ndarray
"""int32 token ids."""


@runtime_checkable
class Tokenizer(Protocol):
    """What every tokenizer offers."""

    @property
    def tokens(self) -> Sequence[str]:
        """The printable form of each token."""
        ...

    @property
    def vocab_size(self) -> int:
        """Number of token ids, special ones included."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; what is not in the vocabulary becomes ``<unk>``."""
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; special tokens become U+FFFD."""
        ...

    def piece(self, token: int, first: bool) -> str:
        """The text that a text token adds to an utterance, as its first token or a later one."""
        ...

    def encode_many(self, texts: np.ndarray) -> tuple[Ids, np.ndarray]:
        """Encode (k,) texts of dtype ``<U`` to PAD-padded ids (k, R) int32 and lengths (k,)."""
        ...

    def decode_many(self, ids: Ids, lengths: np.ndarray) -> np.ndarray:
        """Texts (k,) of dtype ``<U`` of the first `lengths[i]` ids of each row."""
        ...


class _Loops:
    """`encode_many` and `decode_many` for tokenizers that know no quicker way.

    Tokenizers with the same tokens are equal, so that what is compiled for one serves the other.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.tokens == other.tokens  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.tokens))  # type: ignore[attr-defined]

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        raise NotImplementedError

    def encode_many(self, texts: np.ndarray) -> tuple[Ids, np.ndarray]:
        rows = [self.encode(str(text)) for text in texts]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.full((len(rows), int(lengths.max(initial=0))), PAD, np.int32)
        for row, values in zip(ids, rows):
            row[: len(values)] = values
        return ids, lengths

    def decode_many(self, ids: Ids, lengths: np.ndarray) -> np.ndarray:
        return np.array([self.decode(row[:n]) for row, n in zip(ids.tolist(), lengths)], np.str_)


class CharTokenizer(_Loops):
    """One token a character of `alphabet`, a string without repeats."""

    def __init__(self, alphabet: str) -> None:
        if not alphabet or len(set(alphabet)) != len(alphabet) or UNKNOWN in alphabet:
            raise ValueError(
                f"CharTokenizer: alphabet must be distinct characters without U+FFFD; "
                f"got {alphabet!r}. Remove the repeats."
            )
        self.alphabet = alphabet
        self.tokens: tuple[str, ...] = (*SPECIALS, *alphabet)
        self._id = {char: FIRST_TEXT + i for i, char in enumerate(alphabet)}

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        ids = self._id
        return [ids.get(char, UNK) for char in text]

    def decode(self, ids: Iterable[int]) -> str:
        chars = self._chars
        return "".join([chars[i] for i in ids])

    def piece(self, token: int, first: bool) -> str:
        return self.tokens[token]

    def encode_many(self, texts: np.ndarray) -> tuple[Ids, np.ndarray]:
        texts = np.ascontiguousarray(texts, dtype=f"<U{max(texts.dtype.itemsize // 4, 1)}")
        points = texts.view(np.uint32).reshape(len(texts), -1)
        lengths = np.char.str_len(texts)
        ids = self._id_of_point[np.minimum(points, len(self._id_of_point) - 1)]
        return np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, PAD), lengths

    def decode_many(self, ids: Ids, lengths: np.ndarray) -> np.ndarray:
        points = self._point_of_id[ids]
        points[np.arange(ids.shape[1]) >= np.asarray(lengths)[:, None]] = 0
        return points.view(f"<U{max(ids.shape[1], 1)}").reshape(len(ids))

    @cached_property
    def _chars(self) -> tuple[str, ...]:
        return (UNKNOWN,) * FIRST_TEXT + tuple(self.alphabet)

    @cached_property
    def _point_of_id(self) -> np.ndarray:
        return np.array([ord(char) for char in self._chars], np.uint32)

    @cached_property
    def _id_of_point(self) -> Ids:
        table = np.full(max(map(ord, self.alphabet)) + 2, UNK, np.int32)
        for char, token in self._id.items():
            table[ord(char)] = token
        return table


class WordTokenizer(_Loops):
    """One token a word; words are separated by single spaces."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        bad = [w for w in self.words if not w or any(c.isspace() or c == UNKNOWN for c in w)]
        if not self.words or bad or len(set(self.words)) != len(self.words):
            raise ValueError(
                "WordTokenizer: words must be distinct, not empty and without white space; "
                f"got {bad[:3] or list(self.words)[:3]!r}. Clean the list."
            )
        self.tokens: tuple[str, ...] = (*SPECIALS, *self.words)
        self._id = {word: FIRST_TEXT + i for i, word in enumerate(self.words)}

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        return [self._id.get(word, UNK) for word in text.split()]

    def decode(self, ids: Iterable[int]) -> str:
        words = self.tokens
        return " ".join([words[i] if i >= FIRST_TEXT else UNKNOWN for i in ids])

    def piece(self, token: int, first: bool) -> str:
        return self.tokens[token] if first else " " + self.tokens[token]


class HFTokenizer(_Loops):
    """A Hugging Face tokenizer by hub name, local path or object; its ids are shifted by 5.

    Token `i >= 5` is the tokenizer's own token `i - 5`; ids 0-4 are dialgym's special tokens.
    Needs `transformers` (``pip install "dialgym[agents]"``) unless an object is given.
    """

    def __init__(self, source: Any) -> None:
        self._hf = _load_hf(source) if isinstance(source, str) else source
        self._size = len(self._hf)

    @property
    def vocab_size(self) -> int:
        return FIRST_TEXT + self._size

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return (*SPECIALS, *self._hf.convert_ids_to_tokens(range(self._size)))

    def encode(self, text: str) -> list[int]:
        ids = self._hf.encode(text, add_special_tokens=False, split_special_tokens=True)
        return [FIRST_TEXT + i for i in ids]

    def decode(self, ids: Iterable[int]) -> str:
        parts: list[str] = []
        run: list[int] = []
        for token in ids:
            if token >= FIRST_TEXT:
                run.append(int(token) - FIRST_TEXT)
            else:
                parts += [self._text(run), UNKNOWN]
                run = []
        return "".join([*parts, self._text(run)])

    def piece(self, token: int, first: bool) -> str:
        anchor = [] if first else self.encode("a")
        return self.decode([*anchor, token])[len(self.decode(anchor)) :]

    def _text(self, run: list[int]) -> str:
        return self._hf.decode(run, clean_up_tokenization_spaces=False) if run else ""


def make_tokenizer(spec: Any, charset: str, words: Iterable[str] = ()) -> Tokenizer:
    """The tokenizer that a setting names.

    Args:
        spec: ``"char"`` (over `charset`), ``"word"`` (over `words`), ``"hf:NAME_OR_PATH"``,
            or any object that meets `Tokenizer`.
        charset: the characters that the task's utterances are made of.
        words: the words that the task's utterances are made of, for ``"word"``.

    Raises:
        ValueError: the spec names no tokenizer.
    """
    if not isinstance(spec, str):
        if isinstance(spec, Tokenizer):
            return spec
        raise ValueError(f"tokenizer must be a name or meet dialgym's Tokenizer; got {spec!r}.")
    if spec == "char":
        return CharTokenizer(charset)
    if spec == "word":
        return WordTokenizer(words)
    if spec.startswith("hf:"):
        return HFTokenizer(spec.removeprefix("hf:"))
    raise unknown("tokenizer", spec, ["char", "word", "hf:NAME_OR_PATH"])


def _load_hf(name: str) -> Any:
    transformers = require("transformers", "agents", f"tokenizer 'hf:{name}'")
    try:
        return transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"tokenizer 'hf:{name}' was not found: expected a hub name or a local folder with "
            f"a tokenizer. Check the name, the path and the network. ({error})"
        ) from error
