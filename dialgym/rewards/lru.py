"""A bounded cache of what was computed for a key."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class LRU(Generic[Value]):
    """The `size` values used last; a copy or pickle of it is empty."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type["LRU[Value]"], tuple[int]]:
        return type(self), (self.size,)

    def get_many(
        self, keys: Sequence[Hashable], compute: Callable[[list[int]], Sequence[Value]]
    ) -> list[Value]:
        """The value of each key; `compute` gets the places of those not kept, each key once."""
        new: dict[Any, int] = {}
        for place, key in enumerate(keys):
            if key not in self._kept:
                new.setdefault(key, place)
        fresh = dict(zip(new, compute(list(new.values())))) if new else {}
        values = [fresh[key] if key in fresh else self._kept[key] for key in keys]
        self._keep(dict(zip(keys, values)))
        return values

    def _keep(self, values: dict[Hashable, Value]) -> None:
        for key, value in values.items():
            self._kept[key] = value
            self._kept.move_to_end(key)
        while len(self._kept) > self.size:
            self._kept.popitem(last=False)
