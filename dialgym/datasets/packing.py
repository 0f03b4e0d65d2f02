"""From turns to flat token arrays: what the online token env would show, dialogue by dialogue.

They are built once, and mapped into memory afterwards.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dialgym.datasets.schema import arrow, fingerprint
from dialgym.io.cache import cached_array
from dialgym.io.objects import load
from dialgym.kinds import KINDS
from dialgym.language.tokenizers import END
from dialgym.registry import Environment, entry_of
from dialgym.views.making import split_kwargs
from dialgym.views.spaces import TokenLayout, tokenizer_of

CHUNK = 2**15
VERSION = "tokens-2"


def layout_of(env_id: Environment, **kwargs: Any) -> TokenLayout:
    """The token layout of an environment, `kwargs` as for ``gym.make(env_id, ...)``.

    The utterance view of a task has the layout of its token view.

    Raises:
        ValueError: the id or an argument is unknown or impossible.
    """
    entry = entry_of(env_id)
    parts = split_kwargs(entry, load(KINDS["token"].single), kwargs)
    task = parts["task"]
    tokenizer = tokenizer_of(task, parts.get("tokenizer"))
    return TokenLayout.of(task, tokenizer, parts.get("learner", "system"), parts.get("window"))


class PackedTurns(NamedTuple):
    """The turns of all dialogues, T of them, as arrays."""

    dialogue: np.ndarray  # (T,) int64
    text: np.ndarray  # (T,) object
    party: np.ndarray  # (T,) object
    own: np.ndarray  # (T,) bool, said by the learner
    reward: np.ndarray  # (T,) float64
    logged: np.ndarray  # (T,) bool, its token ids are known
    ids: np.ndarray  # their token ids, one after the other, int32
    id_counts: np.ndarray  # (T,) int64


def turns_of(dataset: Any) -> PackedTurns:
    """The turns of a dataset as arrays."""
    sizes, turns = dataset.turns()
    dialogue = np.repeat(np.arange(len(dataset)), sizes)
    tokens = turns.field("tokens")
    logged = ~tokens.is_null().to_numpy(zero_copy_only=False)
    counts = tokens.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return PackedTurns(
        dialogue,
        turns.field("text").to_numpy(zero_copy_only=False),
        turns.field("party").to_numpy(zero_copy_only=False),
        turns.field("said").to_numpy(zero_copy_only=False).astype(bool),
        turns.field("reward").to_numpy(zero_copy_only=False),
        logged,
        tokens.flatten().to_numpy(zero_copy_only=False).astype(np.int32),
        counts.astype(np.int64),
    )


class FlatArrays(NamedTuple):
    """Arrays of which `TokenData` consists."""

    tokens: np.ndarray  # (T,) int32
    is_action: np.ndarray  # (T,) bool
    reward: np.ndarray  # (T,) float32
    offsets: np.ndarray  # (N+1,) int64
    terminated: np.ndarray  # (N,) bool
    truncated: np.ndarray  # (N,) bool


def flat_arrays(dataset: Any, layout: TokenLayout, reencode: bool) -> FlatArrays:
    """The dialogues of a dataset as the token env of the layout shows them."""
    turns = turns_of(dataset)
    if reencode:
        turns = turns._replace(logged=np.zeros_like(turns.logged))
    else:
        _check_ids(turns.ids, layout.tokenizer.vocab_size)
    blocks, sizes = _encode(turns, layout)
    ends = np.cumsum(sizes)
    tokens = np.concatenate(blocks) if blocks else np.zeros(0, np.int32)
    own = np.repeat(turns.own, sizes)
    own[ends - sizes] = False  # the tags
    reward = np.zeros(len(tokens), np.float32)
    reward[ends - 1] = np.where(turns.own, turns.reward, 0)
    lengths = np.bincount(turns.dialogue, sizes, len(dataset)).astype(np.int64)
    flat = _cut(tokens, own, reward, lengths, layout, dataset["truncated"])
    return FlatArrays(*flat, dataset["terminated"], dataset["truncated"])


def _check_ids(ids: np.ndarray, size: int) -> None:
    """Raise a ValueError where a logged token id is none of the vocabulary's."""
    strange = ids[(ids < 0) | (ids >= size)]
    if len(strange):
        raise ValueError(
            f"token data: expected token ids from 0 to {size - 1}; the dialogues have logged "
            f"{int(strange[0])} ({len(strange)} of {len(ids)} are beyond). The data is damaged: "
            "collect it again, or give reencode=True to encode its text."
        )


def check_vocabulary(dataset: Any, layout: TokenLayout, reencode: bool) -> None:
    """Raise a ValueError where the dataset is another party's or of another vocabulary."""
    others = sorted({*dataset["learner"]} - {layout.party})
    if others:
        raise ValueError(
            f"token data: expected dialogues of the {layout.party}; got some of the {others[0]}. "
            "Filter them, or give the layout of the other party (learner=)."
        )
    mine = fingerprint(layout.tokenizer)
    strange = sorted({*dataset["vocabulary"]} - {"", mine})
    if strange and not reencode:
        raise ValueError(
            f"token data: expected token ids of the vocabulary {mine}; "
            f"the dialogues have logged ids of {', '.join(strange)}. Give the tokenizer that they "
            "were collected with, or reencode=True to encode their text again."
        )


def _encode(turns: PackedTurns, layout: TokenLayout) -> tuple[list[np.ndarray], np.ndarray]:
    """The tokens of all turns in order, in pieces, and (T,) how many each turn has."""
    first_id = np.cumsum(turns.id_counts) - turns.id_counts
    pieces, sizes = [], []
    for start in range(0, len(turns.text), CHUNK):
        part = slice(start, start + CHUNK)
        block, size = _encode_texts(turns.party[part], turns.text[part], layout)
        _use_logged(block, size, turns, part, first_id)
        pieces.append(block[np.arange(block.shape[1]) < size[:, None]])
        sizes.append(size)
    return pieces, np.concatenate(sizes) if sizes else np.zeros(0, np.int64)


def _encode_texts(
    parties: np.ndarray, texts: np.ndarray, layout: TokenLayout
) -> tuple[np.ndarray, np.ndarray]:
    """``<tag> text... <end>`` of each text, (k, W) with anything on the right, and sizes (k,)."""
    names = layout.task.voices
    index = sum(place * (parties == name) for place, name in enumerate(names))
    limits = np.array([layout.limit(name) for name in names])[index]
    ids, lengths = layout.tokenizer.encode_many(texts.astype(np.str_))
    widest = int(max(layout.limit(name) for name in names))
    block = np.full((len(texts), widest + 1), END, np.int32)  # after the text stands <end>
    block[:, 0] = np.array([layout.tag_of(name) for name in names])[index]
    width = min(ids.shape[1], widest)
    written = np.arange(width) < lengths[:, None]
    block[:, 1 : 1 + width] = np.where(written, ids[:, :width], END)
    return block, 1 + np.minimum(lengths + 1, limits)


def _use_logged(
    block: np.ndarray, size: np.ndarray, turns: PackedTurns, part: slice, first_id: np.ndarray
) -> None:
    """Put logged token ids in the place of encoded text."""
    logged = np.flatnonzero(turns.logged[part])
    if not len(logged):
        return
    counts = turns.id_counts[part][logged]
    size[logged] = 1 + counts
    inside = np.arange(block.shape[1] - 1) < counts[:, None]
    positions = first_id[part][logged, None] + np.arange(block.shape[1] - 1)
    last = len(turns.ids) - 1
    block[logged, 1:] = np.where(inside, turns.ids[np.minimum(positions, last)], END)


def _cut(
    tokens: np.ndarray,
    own: np.ndarray,
    reward: np.ndarray,
    lengths: np.ndarray,
    layout: TokenLayout,
    truncated: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arrays and offsets, without the tokens beyond the window of truncated episodes.

    Raises:
        ValueError: a dialogue goes on beyond the window.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    long = lengths > layout.window
    if not long.any():
        return tokens, own, reward, offsets
    position = np.arange(len(tokens)) - np.repeat(offsets[:-1], lengths)
    beyond = position >= layout.window
    said_beyond = np.add.reduceat(own & beyond, offsets[:-1]) > 0
    bad = np.flatnonzero(long & (said_beyond | ~truncated))
    if len(bad):
        raise ValueError(
            f"token data: dialogue {bad[0]} has {lengths[bad[0]]} tokens, the window holds "
            f"{layout.window} ({len(bad)} such dialogues). Give a larger window=, or collect in "
            "an environment with this one."
        )
    shortened = np.minimum(lengths, layout.window)
    return (
        tokens[~beyond],
        own[~beyond],
        reward[~beyond],
        np.concatenate([[0], np.cumsum(shortened)]),
    )


def kept_arrays(
    dataset: Any, layout: TokenLayout, reencode: bool, build: Callable[[], FlatArrays]
) -> FlatArrays:
    """The arrays of `build`, from the cache where the same dialogues were packed before.

    They are read-only. The key is the content of the dialogues and all of the layout, so that
    equal data from anywhere share one copy.
    """
    name = f"{VERSION}-{content_key(dataset, layout, reencode)}"
    once = cache(build)
    fields = (
        cached_array(f"{name}-{field}", lambda field=field: getattr(once(), field))  # type: ignore[misc]
        for field in FlatArrays._fields
    )
    return FlatArrays(*fields)


def content_key(dataset: Any, layout: TokenLayout, reencode: bool) -> str:
    """Short name of what `flat_arrays` gives for these arguments."""
    limits = [(voice, layout.limit(voice)) for voice in layout.task.voices]
    facts = (fingerprint(layout.tokenizer), layout.party, layout.window, limits, reencode)
    digest = hashlib.sha256(repr(facts).encode())
    columns = ["turns", "learner", "terminated", "truncated", "vocabulary"]
    _hash_table(dataset.table.select(columns), digest)
    return digest.hexdigest()[:24]


class _Sink:
    """A file that keeps only the digest of its content."""

    closed = False

    def __init__(self, digest: Any) -> None:
        self.write = digest.update

    def flush(self) -> None:
        """There is nothing to flush."""


def _hash_table(table: Any, digest: Any) -> None:
    pa = arrow()
    whole = table.combine_chunks()
    sink = pa.PythonFile(_Sink(digest), mode="w")
    with pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
