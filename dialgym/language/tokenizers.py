"""Tokenizers: text to token ids and back, one protocol for characters, words, BPE, Hugging Face.

Ids 0-4 are the same everywhere: PAD, ``<end>``, ``<unk>`` and the two speaker tags. Text tokens
follow. `encode` never yields a special token but ``<unk>``, so no text can forge a turn; a special
token inside an utterance decodes to U+FFFD.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dialgym.errors import unknown
from dialgym.io.hub import model_folder, pretrained
from dialgym.language.text import UNKNOWN
from dialgym.optional import require

PAD = 0
"""The token that fills an observation on the right."""
END = 1
"""The token that ends an utterance."""
UNK = 2
"""The token of what is not in the vocabulary."""
TAGS = {"system": 3, "user": 4}
SPECIALS = ("<pad>", "<end>", "<unk>", "<system>", "<user>")
FIRST_TEXT = len(SPECIALS)
PRINTABLE = [chr(i) for i in range(33, 127)]
SPACE = "Ġ"  # what byte-level encodings write for a space

Ids = np.ndarray
"""int32 token ids."""


def recorded(tokens: Ids) -> Ids:
    """Tokens of a transcript for the tokens (...) that a learner says, in the same shape.

    Special tokens other than ``<end>`` are no part of an utterance and become ``<unk>``: PAD would
    not be seen, and a speaker's tag would forge a turn.
    """
    return np.where((tokens < FIRST_TEXT) & (tokens != END), UNK, tokens)


@runtime_checkable
class Tokenizer(Protocol):
    """The interface of tokenizers."""

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

    own_specials: frozenset[int] = frozenset()
    _space_comes_first = False

    @property
    def _key(self) -> tuple[Any, ...]:
        return type(self), self.tokens, self.own_specials, self._space_comes_first  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Loops) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        raise NotImplementedError

    def encode_many(self, texts: np.ndarray) -> tuple[Ids, np.ndarray]:
        found: dict[str, int] = {}  # dialogues say the same things often: each is encoded once
        which = np.array([found.setdefault(text, len(found)) for text in texts.tolist()], np.int64)
        rows = [self.encode(text) for text in found]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.full((len(rows), int(lengths.max(initial=0))), PAD, np.int32)
        for row, values in zip(ids, rows):
            row[: len(values)] = values
        return ids[which], lengths[which]

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


class _OfLibrary(_Loops):
    """A tokenizer of a library; a space that it writes before each text is no part of the text."""

    _size: int  # its largest id and 1: there may be ids without a token
    _text: Callable[[list[int]], str]  # of its own ids, which ours are less 5

    @property
    def vocab_size(self) -> int:
        return FIRST_TEXT + self._size

    def decode(self, ids: Iterable[int]) -> str:
        parts: list[str] = []
        run: list[int] = []
        for token in ids:
            if token >= FIRST_TEXT and token not in self.own_specials:
                run.append(int(token) - FIRST_TEXT)
            else:
                parts += [self._text_of(run), UNKNOWN]
                run = []
        return "".join([*parts, self._text_of(run)])

    def _text_of(self, run: list[int]) -> str:
        text = self._text(run) if run else ""
        return text[1:] if self._space_comes_first and text[:1] == " " else text

    @cached_property
    def _space_comes_first(self) -> bool:  # type: ignore[override]
        return self._text([i - FIRST_TEXT for i in self.encode("a") if i >= FIRST_TEXT])[:1] == " "

    def piece(self, token: int, first: bool) -> str:
        if token in self.own_specials:
            return ""
        anchor = [] if first else self.encode("a")
        return self.decode([*anchor, token])[len(self.decode(anchor)) :]


class BPETokenizer(_OfLibrary):
    """Byte-pair encoding from a ``tokenizer.json`` of the `tokenizers` library; ids shifted by 5.

    Args:
        path: of the file; None is the built-in one, of everyday English.

    Raises:
        ValueError: there is no such file, or it is none of a tokenizer.
        ImportError: `tokenizers` is not installed.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = str(path or files("dialgym.language") / "everyday.json")
        self._use(_load_bpe(self.path))

    @classmethod
    def from_json(cls, text: str) -> "BPETokenizer":
        """The tokenizer whose `to_json` is `text`; its `path` is empty.

        Raises:
            ImportError: `tokenizers` is not installed.
        """
        made = cls.__new__(cls)
        made.path = ""
        made._use(require("tokenizers", "rewards", "a BPE tokenizer").Tokenizer.from_str(text))
        return made

    def _use(self, bpe: Any) -> None:
        bpe.no_truncation()  # nor padding, for which a file may ask
        bpe.no_padding()
        self._bpe = bpe
        self._unknown = bpe.token_to_id("<unk>")
        self._size = max(bpe.get_vocab().values(), default=-1) + 1

    def to_json(self) -> str:
        """Contents of its ``tokenizer.json``."""
        return str(self._bpe.to_str())

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return (*SPECIALS, *(self._bpe.id_to_token(i) or "" for i in range(self._size)))

    def encode(self, text: str) -> list[int]:
        ids = self._bpe.encode(text, add_special_tokens=False).ids
        return [UNK if i == self._unknown else FIRST_TEXT + i for i in ids]

    def _text(self, ids: list[int]) -> str:
        return str(self._bpe.decode(ids, skip_special_tokens=False))


class HFTokenizer(_OfLibrary):
    """A Hugging Face tokenizer by ``hf:NAME``, folder or object; its ids are shifted by 5.

    Token `i >= 5` is the tokenizer's own token `i - 5`; ids 0-4 are dialgym's special tokens. Its
    own special tokens are no text either: ``<end>`` alone ends an utterance. Needs `transformers`
    (``pip install "dialgym[agents]"``) unless an object is given.
    """

    def __init__(self, source: Any) -> None:
        self._hf = _load_hf(source) if isinstance(source, str) else source
        self._size = max(self._hf.get_vocab().values(), default=-1) + 1

    @property
    def own(self) -> Any:
        """The tokenizer of Hugging Face."""
        return self._hf

    @cached_property
    def own_specials(self) -> frozenset[int]:  # type: ignore[override]
        """Tokens that the tokenizer itself calls special, such as its end of text."""
        return frozenset(FIRST_TEXT + i for i in special_ids(self._hf))

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        names = self._hf.convert_ids_to_tokens(range(self._size))
        return (*SPECIALS, *(name or "" for name in names))

    def encode(self, text: str) -> list[int]:
        ids = self._hf.encode(text, add_special_tokens=False, split_special_tokens=True)
        return [UNK if FIRST_TEXT + i in self.own_specials else FIRST_TEXT + i for i in ids]

    def _text(self, ids: list[int]) -> str:
        return str(self._hf.decode(ids, clean_up_tokenization_spaces=False))


def special_ids(hf: Any) -> frozenset[int]:
    """Ids that a tokenizer of Hugging Face calls special, by name or where it has added them."""
    added = getattr(hf, "added_tokens_decoder", {}).items()
    return frozenset(getattr(hf, "all_special_ids", ())) | {i for i, one in added if one.special}


def make_tokenizer(spec: Any, charset: str, words: Iterable[str] = ()) -> Tokenizer:
    """The tokenizer that a setting names.

    Args:
        spec: ``"char"`` (over `charset`), ``"word"`` (over `words`), ``"bpe"`` (built in),
            ``"bpe:PATH"`` of a ``tokenizer.json``, ``"hf:NAME"`` or ``"hf:NAME@REVISION"`` of the
            Hugging Face hub, ``"hf:./FOLDER"`` (or another path that begins with a dot, a slash or
            ``~``), or any object that meets `Tokenizer`.
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
    if spec == "bpe" or spec.startswith("bpe:"):
        return BPETokenizer(spec.partition(":")[2] or None)
    if spec.startswith("hf:"):
        return HFTokenizer(spec)
    raise unknown("tokenizer", spec, ["char", "word", "bpe", "bpe:PATH", "hf:NAME", "hf:./FOLDER"])


def _load_bpe(path: str) -> Any:
    tokenizers = require("tokenizers", "rewards", "a BPE tokenizer")
    try:
        return tokenizers.Tokenizer.from_file(path)
    except Exception as error:  # the library raises nothing more precise
        raise ValueError(
            f"tokenizer 'bpe:{path}': expected a tokenizer.json of the tokenizers library "
            f"({error}). Check the path, or make one with scripts/build_bpe.py."
        ) from error


def _load_hf(source: str) -> Any:
    require("transformers", "agents", f"tokenizer {source!r}")
    folder = model_folder(source, "tokenizer", weights=False)
    try:
        return pretrained("AutoTokenizer", folder)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"tokenizer {source!r}: expected the files of a tokenizer of transformers in "
            f"{str(folder)!r}. ({error})"
        ) from error


def train_bpe(texts: Iterable[str], size: int, all_bytes: bool = False) -> Any:
    """A byte-level BPE of `size` tokens, as an object of the `tokenizers` library.

    Printable ASCII is always in it, all else is unknown; with `all_bytes` it writes any script, in
    the tokens of its bytes. ``save(path)`` writes the file that ``tokenizer="bpe:PATH"`` takes.

    Raises:
        ImportError: `tokenizers` is not installed.
    """
    tokenizers = require("tokenizers", "rewards", "training a BPE tokenizer")
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    alphabet = [SPACE, *PRINTABLE]
    if all_bytes:
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return bpe
