"""What a speaker or a generator has worked out about a task."""

from typing import Any
from weakref import WeakKeyDictionary


class PerTask(WeakKeyDictionary[Any, Any]):
    """Values by task, forgotten with the task; a pickle holds none of them."""

    def __reduce__(self) -> tuple[type["PerTask"], tuple[()]]:
        return PerTask, ()
