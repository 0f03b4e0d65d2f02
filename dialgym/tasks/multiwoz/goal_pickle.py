"""The goal model of ConvLab-2 as it comes, a pickle of counts: read without running anything."""

import pickle
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

from dialgym.io.inert_pickle import load_inert

FILE = "new_goal_model.pkl"
PARTS = (
    *("slot_probability", "value_distribution", "domain_ordering", "booking_probability"),
    *("slot_count", "slot_combination"),
)
"""Names of the six parts of the pickle in JSON."""
_ALLOWED = {("collections", kind.__name__): kind for kind in (Counter, OrderedDict, defaultdict)}


def read_goal_pickle(content: bytes, file: str = FILE) -> dict[str, Any]:
    """The content of such a file, as `goal_model.parse_goal_model` takes it.

    Raises:
        ValueError: it is none, or holds what is no count.
    """
    try:
        parts = load_inert(content, _ALLOWED, "counts")
        if not isinstance(parts, tuple) or len(parts) != len(PARTS):
            raise pickle.UnpicklingError(f"it holds {str(parts)[:60]!r}")
        return {name: _as_json(part) for name, part in zip(PARTS, parts)}
    except Exception as error:  # a broken pickle raises whatever its bytes happen to mean
        raise ValueError(
            f"goal model {file}: expected ConvLab-2's pickle of {len(PARTS)} tables ({error}). "
            "Fetch the file again, or write the tables as goal_model.json."
        ) from error


def _as_json(part: Any) -> Any:
    """Tables as JSON has them: a list of ``{"of", "weight"}`` where the keys are no texts."""
    if not isinstance(part, Mapping):
        return part
    if all(isinstance(key, str) for key in part):
        return {key: _as_json(value) for key, value in part.items()}
    return [{"of": list(k) if isinstance(k, tuple) else k, "weight": w} for k, w in part.items()]
