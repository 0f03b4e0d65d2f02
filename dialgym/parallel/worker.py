"""Worker process of a `ShardedVectorEnv`: some rows of the batch."""

import os
import pickle
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dialgym.errors import ServiceError
from dialgym.io.chat_client import STOPS
from dialgym.io.model_settings import SPENT
from dialgym.io.typed_json import Json
from dialgym.parallel.shared_arrays import FINAL, SEEN, Layout, SharedArrays
from dialgym.views.info import Info
from dialgym.views.making import make_batched_view


def main(socket: int, file: int) -> None:
    """Answer the parent's requests until it hangs up.

    Args:
        socket: descriptor of the connection to it.
        file: descriptor of the shared arrays.
    """
    connection, shard = Connection(socket), Shard(file)
    with suppress(EOFError, ConnectionError):
        while True:
            message, before = connection.recv_bytes(), SPENT.counts()
            try:
                name, arguments = _loads(message)
                answer = pickle.dumps(("ok", getattr(shard, name)(*arguments), SPENT.since(before)))
            except Exception as error:
                error = portable(error, shard.where)
                answer = pickle.dumps(("error", error, SPENT.since(before)))
            connection.send_bytes(answer)
    shard.close()


def _loads(message: bytes) -> tuple[str, tuple[Any, ...]]:
    try:
        found: tuple[str, tuple[Any, ...]] = pickle.loads(message)
    except (AttributeError, ImportError) as error:
        raise ValueError(
            f"workers: other processes cannot import what they are sent ({error}). Put classes and "
            "functions into a module of their own, at the top level, or use workers=0."
        ) from error
    return found


def portable(error: Exception, where: str) -> Exception:
    """The error with its traceback as a note, or a `RuntimeError` where it cannot be sent."""
    if isinstance(error, (ServiceError, *STOPS)):  # which say all by themselves
        return error
    trace = "".join(traceback.format_exception(error))
    error.add_note(f"{where}:\n{trace}")
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # whatever its class does when it is read
        pass
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    return RuntimeError(f"an environment worker raised {kind}: {error}\n{trace}")


class Shard:
    """Rows of a batch; the parent's requests are named as the methods.

    Args:
        file: descriptor of the shared arrays.
    """

    def __init__(self, file: int) -> None:
        self.where = "In an environment worker"
        self._file = file
        self._with_masks = False

    def make(self, make: dict[str, Any], rows: tuple[int, int], layout: Layout) -> None:
        """Make the batch and map the shared arrays."""
        start, stop = rows
        self.rows = slice(start, stop)
        self.where = (
            f"In the environment worker of rows {start} to {stop - 1}, its rows 0 to "
            f"{stop - start - 1}"
        )
        env: Any = make_batched_view(num_envs=stop - start, **make)
        self.env = env
        self.arrays = SharedArrays(self._file, layout)
        os.close(self._file)

    def reset(
        self,
        seeds: list[int | None] | None,
        mask: np.ndarray | None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    ) -> Info | None:
        """Begin all rows, or those of the mask."""
        if mask is not None and not mask.any():
            return None
        seen, info = self.env.reset_rows(seeds, mask, options)
        self.arrays.put(SEEN, self.rows, seen)
        return self._answer(info)

    def step(self) -> Info | None:
        """Take the actions in the shared arrays."""
        arrays, rows = self.arrays, self.rows
        seen, *ends, info = self.env.step(arrays["action"][rows])
        arrays.put(SEEN, rows, seen)
        for name, values in zip(("reward", "terminated", "truncated"), ends):
            arrays[name][rows] = values
        return self._answer(info)

    def masks(self) -> None:
        """Write the action masks, now and with each later answer."""
        self._with_masks = True
        self.arrays["mask"][self.rows] = self.env.action_masks()

    def get_state(self) -> list[Json]:
        """The dialogues as plain JSON."""
        state: list[Json] = self.env.get_state()
        return state

    def set_state(self, state: list[Json]) -> None:
        """Go on from dialogues as plain JSON."""
        self.env.set_state(state)
        self.arrays["over"][self.rows] = self.env._over
        if state:
            self.arrays.put(SEEN, self.rows, self.env._observe())
            if self._with_masks:
                self.masks()

    def close(self) -> None:
        """Close the batch, if it was made."""
        if hasattr(self, "env"):
            self.env.close()

    def _answer(self, info: Info) -> Info | None:
        """The info without what travels in shared memory; None where it says nothing."""
        self.arrays["over"][self.rows] = self.env._over
        if self._with_masks:
            self.masks()
        if "final_obs" in info:
            final = info.pop("final_obs")
            for row in info["_final_obs"].nonzero()[0].tolist():
                self.arrays.put(FINAL, self.rows.start + row, final[row])
        elif not self.env.each_step & info.keys() and not info["turn"].any():
            return None
        return sparse_info(info)


def sparse_info(info: Info, masks: bool = True) -> Info:
    """The part of a worker's info that has to travel: no arrays in which every row is empty.

    Texts become the rows that have one, and the texts: most rows of an array of objects are empty,
    and each would be pickled. The masks of a final info are all the same, and stay behind.
    """
    return {
        name: sparse_info(value, masks=False) if isinstance(value, dict) else _sparse(value)
        for name, value in info.items()
        if isinstance(value, dict)
        or (value.flags.writeable and (masks or not name.startswith("_")))  # or it is shared
    }


def _sparse(values: np.ndarray) -> Any:
    if values.dtype != object:
        return values
    rows = np.flatnonzero(values)
    return rows, values[rows].tolist()
