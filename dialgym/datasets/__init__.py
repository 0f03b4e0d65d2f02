"""Stored dialogues: collecting, loading, choosing, and token arrays to learn from."""

from dialgym.datasets.collect import collect
from dialgym.datasets.dataset import Dataset, concatenate
from dialgym.datasets.load import DialogueStream, load_dataset
from dialgym.datasets.minari import from_minari
from dialgym.datasets.packing import layout_of
from dialgym.datasets.tokens import TokenBatch, TokenData, pack, returns_to_go

__all__ = [
    "Dataset",
    "DialogueStream",
    "TokenBatch",
    "TokenData",
    "collect",
    "concatenate",
    "from_minari",
    "layout_of",
    "load_dataset",
    "pack",
    "returns_to_go",
]
