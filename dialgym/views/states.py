"""The dialogues of a batched env as bytes, which are read back without running anything.

The bytes are a pickle of what changes while dialogues go on. What does not (the task, its speakers,
spaces and tokenizer) is that of the env that reads them. Reading takes objects of classes that the
task or dialgym defines, arrays, generators and containers. It calls no constructor but those of the
last three: a pickle that names anything else is refused.
"""

import enum
import io
import pickle
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from dialgym.language.tokenizers import Tokenizer
from dialgym.simulators import Speaker
from dialgym.tasks import Task

FIXED = (Task, Speaker, gym.Space, EnvSpec, Tokenizer)
ROOMS = ("tasks", "domains", "simulators", "language", "rewards", "views")
OF_DIALOGUES = tuple(f"dialgym.{room}." for room in ROOMS)
CONTAINERS: tuple[type, ...] = (set, frozenset, list, dict, tuple, bytearray, complex, slice, range)
CONTAINERS += (OrderedDict, defaultdict, deque)
NUMPY = ("numpy", "numpy._core.multiarray", "numpy.random._pickle", "numpy.random.bit_generator")
OF_NUMPY = {"dtype", "ndarray", "_reconstruct", "scalar", "SeedSequence"}
OF_NUMPY |= {"__bit_generator_ctor", "__generator_ctor", "__pyx_unpickle_SeedSequence"}
BIT_GENERATORS = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}


def to_bytes(env: Any) -> bytes:
    """What changes of an env with a `task` and `dialogues`."""
    fixed = _fixed(env)
    left_out = {*fixed, "metadata"}
    state = {name: value for name, value in vars(env).items() if name not in left_out}
    file = io.BytesIO()
    _Writer(file, fixed).dump(state)
    return file.getvalue()


def from_bytes(env: Any, state: bytes) -> None:
    """Go on from where an equal env was.

    Raises:
        ValueError: these are no bytes of `to_bytes`, or not those of such an env.
    """
    try:
        found = _Reader(io.BytesIO(state), _fixed(env), type(env.task)).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, KeyError) as error:
        raise ValueError(f"the state of {env.task.name} cannot be read: {error}") from error
    vars(env).update(found)


def _fixed(env: Any) -> dict[str, Any]:
    """What does not change, by its place in the env: parts of the task among it."""
    places = {**vars(env), **{f"dialogues.{k}": v for k, v in vars(env.dialogues).items()}}
    fixed = {place: value for place, value in places.items() if isinstance(value, FIXED)}
    parts = getattr(env.task, "__dict__", {})
    return {**{f"task.{k}": v for k, v in parts.items() if hasattr(v, "__dict__")}, **fixed}


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, fixed: Mapping[str, Any]) -> None:
        super().__init__(file)
        self.places = {id(value): place for place, value in fixed.items()}

    def persistent_id(self, value: Any) -> str | None:
        return self.places.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        """Enumerations by value: some versions of Python look their members up by `getattr`."""
        return (type(value), (value.value,)) if isinstance(value, enum.Enum) else NotImplemented


class _Reader(pickle._Unpickler):  # type: ignore[name-defined, misc]
    """The one that is written in Python: of it alone single operations can be refused."""

    dispatch: dict[int, Any] = dict(pickle._Unpickler.dispatch)  # type: ignore  # noqa: RUF012

    def __init__(self, file: io.BytesIO, fixed: Mapping[str, Any], task: type) -> None:
        super().__init__(file)
        self.fixed = fixed
        own = {cls.__module__.partition(".")[0] + "." for cls in task.__mro__}
        self.packages = (*OF_DIALOGUES, *(own - {"builtins.", "typing.", "abc.", "dialgym."}))

    def persistent_load(self, place: str) -> Any:
        return self.fixed[place]

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules.get(module), name, None)
        known = module in NUMPY and name in OF_NUMPY
        known |= module.startswith("numpy.random.") and name in BIT_GENERATORS
        if isinstance(found, type):
            known |= found in CONTAINERS or f"{module}.".startswith(self.packages)
            known |= issubclass(found, enum.Enum) and module.startswith("gymnasium.")
        if found is None or not known:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a dialogue")
        return found

    def load_reduce(self) -> None:
        """Call what a pickle says: numpy's makers, containers and enumerations."""
        called = self.stack[-2]  # type: ignore[attr-defined]
        is_type = isinstance(called, type)
        may = called in CONTAINERS if is_type else called.__module__ in NUMPY
        may |= called is np.dtype or (is_type and issubclass(called, enum.Enum))
        if not may:
            raise pickle.UnpicklingError(f"{called!r} may not be called")
        super().load_reduce()  # type: ignore[misc]

    def _refuse(self) -> None:
        raise pickle.UnpicklingError("an operation of old pickles")

    dispatch[pickle.REDUCE[0]] = load_reduce
    for _operation in (pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_operation[0]] = _refuse
