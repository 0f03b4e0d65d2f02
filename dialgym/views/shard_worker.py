"""A worker process of `ShardedVectorEnv`: some rows of the batch."""

import json
import sys
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.views.info import Info
from dialgym.views.shards import FINAL, SEEN, Layout, SharedArrays, sparse_info


def main() -> None:
    """Connect to the parent and do as it says, until it hangs up."""
    address, key = (sys.stdin.readline().strip() for _ in range(2))
    where = json.loads(address)
    pipe = Client(tuple(where) if isinstance(where, list) else where, authkey=bytes.fromhex(key))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        _serve(pipe)


def _serve(pipe: Connection) -> None:
    shard: _Shard | None = None
    while True:
        name, *args = pipe.recv()
        try:
            if name == "make":
                shard = _Shard(*args)
                result = None
            else:
                result = getattr(shard, name)(*args)
        except Exception as error:
            pipe.send(("error", error))
        else:
            pipe.send(("ok", result))


class _Shard:
    """The rows, and what the parent can ask of them."""

    def __init__(
        self, make: dict[str, Any], rows: tuple[int, int], path: str, layout: Layout
    ) -> None:
        from dialgym.views.making import make_batched_view

        self.rows = slice(*rows)
        self.env: Any = make_batched_view(num_envs=rows[1] - rows[0], **make)
        self.arrays = SharedArrays(Path(path), layout)
        self.with_masks = False

    def reset(
        self,
        seeds: list[int | None] | None,
        reset_mask: np.ndarray | None,
        options: dict[str, Any],
    ) -> Info | None:
        if reset_mask is not None:
            if not reset_mask.any():
                return None
            options = {**options, "reset_mask": reset_mask}
        seen, info = self.env.reset(seed=seeds, options=options)
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

    def get_state(self) -> bytes:
        state: bytes = self.env.get_state()
        return state

    def set_state(self, state: bytes) -> None:
        self.env.set_state(state)
        if self.with_masks:
            self.masks()

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
        elif not {"action_mask", "anchor"} & info.keys() and not info["turn"].any():
            return None
        return sparse_info(info)
