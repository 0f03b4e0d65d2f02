"""Stored dialogues: collecting, loading, choosing, and arrays to learn from.

| module | what is in it |
|---|---|
| `collect` | `collect` |
| `collector` | from a recipe to dialogues, and the folder that a collection fills |
| `workers` | collecting in several processes |
| `schema` | the columns of a stored dialogue, and how they are written |
| `dataset` | `Dataset`: choosing, splitting, saving |
| `load` | `load_dataset`: files and the hub; `from_minari` |
| `describe` | counts and pictures |
| `tokens`, `packing` | dialogues as token arrays |
| `acts` | chosen acts as arrays |
| `minari` | exchange with Minari |
"""

from dialgym.datasets.act_data import ActData, ActTransitions
from dialgym.datasets.collect import CollectOptions, collect
from dialgym.datasets.dataset import Dataset, concatenate
from dialgym.datasets.load import DialogueStream, from_minari, load_dataset
from dialgym.datasets.packing import layout_of
from dialgym.datasets.tokens import TokenBatch, TokenData, pack, returns_to_go

__all__ = [
    "ActData",
    "ActTransitions",
    "CollectOptions",
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
