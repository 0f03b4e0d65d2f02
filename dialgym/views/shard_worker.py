"""A worker process of `ShardedVectorEnv`: some rows of the batch."""

import io
import os
import pickle
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dialgym.errors import ServiceError
from dialgym.views.channels import Channel
from dialgym.views.info import Info
from dialgym.views.notes import NAMES
from dialgym.views.shard_infos import sparse_info
from dialgym.views.shared_arrays import FINAL, SEEN, Layout, SharedArrays
from dialgym.views.snapshots import Snapshot
from dialgym.views.typed_json import Json

ASKED_FOR = {"action_mask", *NAMES}
"""What infos have at every step, where it was asked for."""


def main(*files: int) -> None:
    """Do as the parent says, until it hangs up.

    Args:
        files: descriptors: four of the channel to it, and of the shared arrays.
    """
    *ends, arrays = files
    reads, writes, theirs, ours = ends
    with suppress(EOFError, BrokenPipeError):
        _serve(Channel((reads, writes, theirs, ours)), arrays)


def _serve(channel: Channel, file: int) -> None:
    shard: _Shard | None = None
    done, answer = 0, b""
    while True:
        number, request = channel.receive(done + 1)
        if number > done:
            message = io.BytesIO(request)
            name, undo = pickle.load(message)
            try:
                if name == "make":
                    shard = _Shard(file, *_arguments(message))
                    result = None
                else:
                    assert shard is not None
                    result = shard.answer(name, undo, _arguments(message))
                answer = pickle.dumps(("ok", result))
            except Exception as error:
                where = "In an environment worker" if shard is None else shard.where
                answer = pickle.dumps(("error", portable(error, where)))
            done = number
        channel.send(done, answer)


def _arguments(message: io.BytesIO) -> tuple[Any, ...]:
    try:
        found: tuple[Any, ...] = pickle.load(message)
    except (AttributeError, ImportError) as error:
        raise ValueError(
            f"workers: other processes cannot import what they are sent ({error}). Put classes and "
            "functions into a module of their own, at the top level, or use workers=0."
        ) from error
    return found


def portable(error: Exception, where: str) -> Exception:
    """The error with its traceback as a note, or what it says where it cannot be sent."""
    if isinstance(error, ServiceError):  # which says all by itself
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


class _Shard:
    """The rows, and what the parent can ask of them."""

    def __init__(
        self, file: int, make: dict[str, Any], rows: tuple[int, int], layout: Layout
    ) -> None:
        from dialgym.views.making import make_batched_view

        self.rows = slice(*rows)
        self.where = (
            f"In the environment worker of rows {rows[0]} to {rows[1] - 1}, its rows 0 to "
            f"{rows[1] - rows[0] - 1}"
        )
        self.env: Any = make_batched_view(num_envs=rows[1] - rows[0], **make)
        self.arrays = SharedArrays(file, layout)
        os.close(file)
        self.with_masks = False
        self.before: Snapshot | None = None  # the last request, if that can be undone

    def answer(self, name: str, undo: bool, arguments: tuple[Any, ...]) -> Any:
        """What a request gives; with `undo`, after the one before has been undone."""
        if undo and self.before is not None:
            self._undo(self.before)
        self.before = None
        result = getattr(self, name)(*arguments)
        self.arrays["over"][self.rows] = self.env._over
        return result

    def _undo(self, before: Snapshot) -> None:
        before.restore()
        self._show()

    def _show(self) -> None:
        """Put what can be seen of dialogues that no step has led to into shared memory."""
        if self.env._rngs:  # they have begun
            self.arrays.put(SEEN, self.rows, self.env._observe())
            if self.with_masks:
                self.masks()

    def reset(
        self,
        seeds: list[int | None] | None,
        reset_mask: np.ndarray | None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    ) -> Info | None:
        if reset_mask is not None and not reset_mask.any():
            return None
        self.before = self.env.snapshot(reset_mask)
        seen, info = self.env.reset_rows(seeds, reset_mask, options)
        self.arrays.put(SEEN, self.rows, seen)
        return self._sent(info)

    def step(self) -> Info | None:
        arrays, rows = self.arrays, self.rows
        seen, *ends, info = self.env.step(arrays["action"][rows])
        arrays.put(SEEN, rows, seen)
        for name, values in zip(("reward", "terminated", "truncated"), ends):
            arrays[name][rows] = values
        return self._sent(info)

    def masks(self) -> None:
        self.with_masks = True
        self.arrays["mask"][self.rows] = self.env.action_masks()

    def get_state(self) -> list[Json]:
        state: list[Json] = self.env.get_state()
        return state

    def set_state(self, state: list[Json]) -> None:
        self.before = self.env.snapshot()
        self.env.set_state(state)
        self._show()

    def modules(self) -> list[str]:
        return sorted(sys.modules)

    def _sent(self, info: Info) -> Info | None:
        """The info without what travels in shared memory; None where it says nothing."""
        if self.with_masks:
            self.masks()
        if "final_obs" in info:
            final = info.pop("final_obs")
            for row in info["_final_obs"].nonzero()[0].tolist():
                self.arrays.put(FINAL, self.rows.start + row, final[row])
        elif not ASKED_FOR & info.keys() and not info["turn"].any():
            return None
        return sparse_info(info)
