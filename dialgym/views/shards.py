"""Batched views sharded over worker processes, with their arrays in shared memory.

A worker is a plain Python process that imports dialgym and nothing heavier. It does not import
the caller's script again, so scripts need no ``if __name__ == "__main__"``.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.views.arguments import check_actions, seeds_of_rows, split_reset_mask
from dialgym.views.info import BatchInfoForm, Info, restricted
from dialgym.views.played import Played
from dialgym.views.vector_base import Step

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); " \
        "from dialgym.views.shard_worker import main; main()"  # fmt: skip


Layout = Mapping[str, tuple[str, tuple[int, ...]]]
"""Of shared arrays: dtype and shape by name."""


class ShardedVectorEnv(Played, gym.vector.VectorEnv):
    """N dialogues over `workers` processes; equal to one batched token or act view of N rows.

    Args:
        make: what each worker calls: the env id and keyword arguments of
            `dialgym.views.making.make_batched_view`.
        num_envs: N, at least one for each worker.
        workers: number of processes.

    Raises:
        ValueError: there are more workers than dialogues.
        RuntimeError: a worker ended; the pool cannot go on and must be made again.
    """

    def __init__(self, make: dict[str, Any], num_envs: int, workers: int) -> None:
        if not isinstance(workers, int) or not 1 <= workers <= num_envs:
            raise ValueError(
                f"workers must be a whole number from 1 to num_envs ({num_envs}); got {workers!r}."
            )
        from dialgym.views.making import make_batched_view

        template: Any = make_batched_view(num_envs=1, **make)  # spaces, and errors of arguments
        self.num_envs = num_envs
        self.metadata = template.metadata
        self.autoreset_mode = template.autoreset_mode
        self.single_observation_space = template.single_observation_space
        self.single_action_space = template.single_action_space
        self.observation_space = gym.vector.utils.batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self.task = template.task
        self.learner = template.learner
        if hasattr(template, "acts"):
            self.acts = template.acts
        self.steps_per_utterance = template.steps_per_utterance
        self._step_limit = template._step_limit
        self._info = BatchInfoForm(self.task, self.learner, num_envs, make.get("text_info", True))
        self._slices = _slices(num_envs, workers)
        self.arrays = SharedArrays.create(
            layout_of(num_envs, self.single_observation_space, self.single_action_space)
        )
        self._masks = False
        self._workers: list[_Worker] = []
        self._cleanup = weakref.finalize(self, _shut_down, self._workers, self.arrays)
        try:
            for i, rows in enumerate(self._slices):
                self._workers.append(_Worker(make, rows, self.arrays, f"{i + 1} of {workers}"))
            _gather(self._workers)
        except BaseException:
            self._cleanup()
            raise

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Begin all dialogues, or those of ``reset_mask``, as the batched view does."""
        n = self.num_envs
        seeds = seeds_of_rows(seed, n, self.task.name)
        mask, others = split_reset_mask(options, n, self.task.name)
        for worker, rows in zip(self._workers, self._slices):
            part = None if mask is None else mask[rows]
            worker.send("reset", seeds and seeds[rows], part, others)
        info = self._join(_gather(self._workers))
        return self.arrays.get(SEEN), info if mask is None else restricted(info, mask)

    def step(self, actions: Any) -> Step:
        """One action in each dialogue, as the batched view has it."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Set the workers going."""
        self.arrays["action"][:] = check_actions(actions, self.action_space, self.task.name)
        for worker in self._workers:
            worker.send("step")

    def step_wait(self) -> Step:
        """The result of the step under way."""
        info = self._join(_gather(self._workers))
        ends = (self.arrays[name].copy() for name in ("reward", "terminated", "truncated"))
        return (self.arrays.get(SEEN), *ends, info)

    def action_masks(self) -> np.ndarray:
        """(N, V) or (N, A) bool; asked for once, masks come with each reply."""
        if not self._masks:
            for worker in self._workers:
                worker.send("masks")
            _gather(self._workers)
            self._masks = True
        return self.arrays["mask"].copy()

    def get_state(self) -> list[bytes]:
        """All dialogues and their generators as they stand, for `set_state` of an equal env."""
        for worker in self._workers:
            worker.send("get_state")
        return _gather(self._workers)

    def set_state(self, state: list[bytes]) -> None:
        """Go on from where another env with as many workers was.

        Raises:
            ValueError: that env had another number of workers.
        """
        if len(state) != len(self._workers):
            raise ValueError(
                f"the state is that of {len(state)} workers; this env has {len(self._workers)}. "
                "Make it with the same number."
            )
        for worker, part in zip(self._workers, state):
            worker.send("set_state", part)
        _gather(self._workers)

    def loaded_modules(self) -> list[list[str]]:
        """The names of the modules that each worker has loaded."""
        for worker in self._workers:
            worker.send("modules")
        return _gather(self._workers)

    def close_extras(self, **kwargs: Any) -> None:
        """End the workers and give the shared memory back."""
        self._cleanup()

    def _join(self, infos: list[Info | None]) -> Info:
        """The info of all rows; a worker sends None where no utterance has ended."""
        blank = self._info.blank()
        if all(part is None for part in infos):
            return blank
        info = join_infos([part or {} for part in infos], self._slices, blank)
        over = info.get("_final_info")
        if over is not None:
            masks = {f"_{name}": over for name in info["final_info"] if name[0] != "_"}
            info["final_info"] = restricted({**info["final_info"], **masks}, over)
            final = np.full(self.num_envs, None, object)
            for row in np.flatnonzero(info["_final_obs"]).tolist():
                final[row] = self.arrays.get(FINAL, row)
            info["final_obs"] = final
        return info


SEEN, FINAL = "observation", "final"


def layout_of(num_envs: int, seen: gym.Space, said: gym.Space) -> Layout:
    """The arrays that N dialogues exchange with their workers, widest entries first.

    Args:
        num_envs: N.
        seen: a `Box`, or a `Dict` of some, each an array of its own.
        said: `Discrete` or `MultiBinary`.
    """
    parts = seen.items() if isinstance(seen, gym.spaces.Dict) else [("", seen)]
    named = [(f"/{key}" if key else "", box) for key, box in parts]
    fields: dict[str, tuple[Any, Any]] = {
        "reward": (np.float64, ()),
        "action": (said.dtype, said.shape),
        "terminated": (np.bool_, ()),
        "truncated": (np.bool_, ()),
        "mask": (np.bool_, (said.n,)),  # type: ignore[attr-defined]
        **{name + key: (b.dtype, b.shape) for name in (SEEN, FINAL) for key, b in named},
    }
    widest = sorted(fields, key=lambda name: -np.dtype(fields[name][0]).itemsize)
    return {n: (np.dtype(fields[n][0]).str, (num_envs, *fields[n][1])) for n in widest}


class SharedArrays:
    """Arrays over all rows by name, in a file that the processes map into memory."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.layout = path, layout
        sizes = {k: np.dtype(t).itemsize * int(np.prod(s)) for k, (t, s) in layout.items()}
        if path.stat().st_size == 0:
            os.truncate(path, sum(sizes.values()))
        memory, start = np.memmap(path, np.uint8, "r+"), 0
        self._arrays: dict[str, np.ndarray] = {}
        for name, (dtype, shape) in layout.items():
            part = np.asarray(memory[start : start + sizes[name]])
            self._arrays[name] = part.view(dtype).reshape(shape)
            start += sizes[name]
        self._keys = [name.partition("/")[2] for name in layout if name.startswith(f"{SEEN}/")]

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def get(self, name: str, rows: Any = slice(None)) -> Any:
        """A copy of the observations of some rows: an array, or a dict of arrays."""
        if not self._keys:
            return self._arrays[name][rows].copy()
        return {key: self._arrays[f"{name}/{key}"][rows].copy() for key in self._keys}

    def put(self, name: str, rows: Any, observations: Any) -> None:
        """Write the observations of some rows."""
        if not self._keys:
            self._arrays[name][rows] = observations
        for key in self._keys:
            self._arrays[f"{name}/{key}"][rows] = observations[key]

    @classmethod
    def create(cls, layout: Layout) -> "SharedArrays":
        """New arrays, in memory where the system has a file system for that."""
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        handle, name = tempfile.mkstemp(prefix="dialgym-", dir=memory)
        os.close(handle)
        return cls(Path(name), layout)


class _Worker:
    """One process, from its parent's side."""

    def __init__(self, make: dict[str, Any], rows: slice, arrays: SharedArrays, name: str) -> None:
        self.name = name
        key = secrets.token_bytes(16)
        with Listener(authkey=key) as listener:
            address = listener.address
            command = [sys.executable, "-c", START, json.dumps(sys.path)]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE)
            assert self.process.stdin is not None
            self.process.stdin.write(f"{json.dumps(address)}\n{key.hex()}\n".encode())
            self.process.stdin.close()
            self.pipe: Connection = _accept(listener, self.process, key)
        self.send("make", make, (rows.start, rows.stop), str(arrays.path), arrays.layout)

    def send(self, *message: Any) -> None:
        try:
            self.pipe.send(message)
        except OSError as error:
            raise self._gone() from error

    def wait(self) -> tuple[str, Any]:
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        return kind, value

    def _gone(self) -> RuntimeError:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        return RuntimeError(
            f"environment worker {self.name} ended unexpectedly (exit status "
            f"{self.process.returncode}). The dialogues under way are lost; make the pool again."
        )


def _gather(workers: list[_Worker]) -> list[Any]:
    """The answers of all workers; the first error only after all have answered."""
    answers = [worker.wait() for worker in workers]
    for kind, value in answers:
        if kind == "error":
            raise value
    return [value for _, value in answers]


def _accept(listener: Listener, process: subprocess.Popen, key: bytes) -> Connection:
    """The worker's connection; an error where it ends before it connects."""

    address = listener.address

    def wake() -> None:  # accept() itself would wait for ever
        process.wait()
        with suppress(OSError, EOFError):
            Client(address, authkey=key).close()

    threading.Thread(target=wake, daemon=True).start()
    connection = listener.accept()
    if process.poll() is not None:
        raise RuntimeError(
            "an environment worker could not start; its own message stands above. "
            "Check that dialgym can be imported where you are."
        )
    return connection


def _shut_down(workers: list[_Worker], arrays: SharedArrays) -> None:
    for worker in workers:
        with suppress(OSError):
            worker.pipe.close()
    for worker in workers:
        try:
            worker.process.wait(5)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
    arrays.path.unlink(missing_ok=True)


def _slices(num_envs: int, workers: int) -> list[slice]:
    edges = [round(i * num_envs / workers) for i in range(workers + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def sparse_info(info: Info, masks: bool = True) -> Info:
    """What of a worker's info has to travel: no arrays in which every row is empty.

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


def join_infos(infos: list[Info], slices: list[slice], blank: Info) -> Info:
    """The sparse infos of consecutive rows as one info of all.

    Args:
        infos: of the workers; {} of one that has nothing to say.
        slices: the rows of each.
        blank: an info of all rows that says nothing, for what no worker has sent.
    """
    joined = dict(blank)
    for name in dict.fromkeys(name for info in infos for name in info):
        parts = [(rows, info[name]) for rows, info in zip(slices, infos) if name in info]
        if isinstance(parts[0][1], dict):
            inner = blank.get(name, blank)  # a final info is built as any other
            joined[name] = join_infos([info.get(name, {}) for info in infos], slices, inner)
        else:
            joined[name] = _joined(parts, blank.get(name), slices[-1].stop)
    return joined


def _joined(parts: list[tuple[slice, Any]], blank: np.ndarray | None, num_envs: int) -> np.ndarray:
    """One array of all rows, from what some workers sent of it."""
    first = parts[0][1]
    if blank is not None:
        values = blank.copy()
    elif isinstance(first, tuple):
        values = np.full(num_envs, "", object)
    else:
        values = np.zeros((num_envs, *first.shape[1:]), first.dtype)
    for rows, part in parts:
        if isinstance(part, tuple):
            values[rows.start + part[0]] = part[1]
        else:
            values[rows] = part
    return values
