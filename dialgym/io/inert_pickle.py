"""Pickles read without running anything: plain values, and what stands in for a few names."""

import io
import pickle
from collections.abc import Mapping
from typing import Any


class _Unpickler(pickle.Unpickler):
    """Loads plain values and the stand-ins; whatever else is named is an error."""

    def __init__(self, content: bytes, standins: Mapping[tuple[str, str], Any], kept: str) -> None:
        super().__init__(io.BytesIO(content))
        self._standins, self._kept = standins, kept

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._standins:
            raise pickle.UnpicklingError(
                f"it holds {module}.{name}, and only {self._kept} are read"
            )
        return self._standins[module, name]


def load_inert(content: bytes, standins: Mapping[tuple[str, str], Any], kept: str) -> Any:
    """Load a pickle in which only some names may be looked up.

    Args:
        content: of the file.
        standins: module and name to what is called in their place. It must be harmless with
            whatever it is given.
        kept: what is read of such a file, for messages.

    Raises:
        Exception: it holds another name, or is broken; its bytes say which error that is.
    """
    return _Unpickler(content, standins, kept).load()
