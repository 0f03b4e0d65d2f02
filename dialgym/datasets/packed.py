"""Token arrays that are built once and mapped into memory afterwards."""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

from dialgym.cache import cached_array
from dialgym.datasets.packing import FlatArrays
from dialgym.datasets.tables import arrow
from dialgym.datasets.vocabulary import fingerprint
from dialgym.views.layout import TokenLayout

VERSION = "tokens-2"


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
    parties = layout.task.parties
    limits = [(party, layout.limit(party)) for party in parties]
    facts = (fingerprint(layout.tokenizer), layout.party, layout.window, limits, reencode)
    digest = hashlib.sha256(repr(facts).encode())
    columns = ["turns", "learner", "terminated", "truncated", "vocabulary"]
    _hash_table(dataset.table.select(columns), digest)
    return digest.hexdigest()[:24]


class _Sink:
    """A file that keeps only the digest of what is written to it."""

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
