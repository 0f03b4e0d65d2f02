"""Sharded vector environment over worker processes, with arrays in shared memory.

A worker is a plain Python process that imports dialgym and nothing heavier. It does not import
the caller's script again, so scripts need no ``if __name__ == "__main__"``.
"""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded
from gymnasium.vector import AutoresetMode

from dialgym.errors import whole_number
from dialgym.io.typed_json import Json
from dialgym.parallel.pool import WorkerPool
from dialgym.parallel.shared_arrays import FINAL, SEEN, SharedArrays, layout_of, open_memory
from dialgym.views.arguments import (
    BEFORE,
    Options,
    after_the_end,
    check_actions,
    check_count,
    reset_needed,
    rows_by_options,
    seeds_of_rows,
    split_reset_mask,
)
from dialgym.views.env_spec import SpecMixin
from dialgym.views.info import BatchInfoForm, Info, restricted
from dialgym.views.making import make_batched_view
from dialgym.views.vector_base import Step


class ShardedVectorEnv(SpecMixin, gym.vector.VectorEnv):
    """N dialogues over `workers` processes; equal to one batched token or act view of N rows.

    Args:
        make: the env id and keyword arguments of `dialgym.views.making.make_batched_view`, which
            each worker calls.
        num_envs: N, at least one for each worker.
        workers: number of processes.

    A call that is interrupted (Ctrl-C, an exception of a signal handler) leaves the env broken:
    each later call but `close` is a `RuntimeError`. After an error of a worker the rows no longer
    stand alike, and all of them have to be reset. The env is of the process that made it; a fork of
    that cannot use it.

    Raises:
        ValueError: a number is none, there are more workers than dialogues, or an argument cannot
            be sent to them.
        OSError: there is no room for the shared memory.
        RuntimeError: a worker ended; the env cannot go on and must be made again.
    """

    def __init__(self, make: dict[str, Any], num_envs: int, workers: int) -> None:
        template: Any = make_batched_view(num_envs=1, **make)  # spaces, and errors of arguments
        num_envs = whole_number("num_envs", num_envs, template.task.name)
        workers = whole_number("workers", workers, f"{num_envs} dialogues", most=num_envs)
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
        for name in ("acts", "act_names", "tokenizer"):
            if hasattr(template, name):  # a kind of views has the ones or the other
                setattr(self, name, getattr(template, name))
        self.steps_per_utterance = template.steps_per_utterance
        self.options, self.each_step = template.options, template.each_step
        more = template.extra_parts
        self._info = BatchInfoForm(self.task, self.learner, num_envs, self.options.text_info, more)
        self._slices = _slices(num_envs, workers)
        self._with_masks = self._begun = self._failed = False
        self._over = np.zeros(num_envs, bool)  # rows that the caller has to begin
        layout = layout_of(num_envs, self.single_observation_space, self.single_action_space)
        with open_memory(layout) as file:
            self.arrays = SharedArrays(file.fileno(), layout)
            orders = [(make, (rows.start, rows.stop), layout) for rows in self._slices]
            self.pool = WorkerPool(orders, file.fileno())

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options | None = None,
    ) -> tuple[Any, Info]:
        """Begin all dialogues, or those of ``reset_mask``, as the batched view does.

        Raises:
            AlreadyPendingCallError: a step is under way; see `step_wait`.
            ResetNeeded: a mask leaves out rows, and there are no dialogues yet or an error of a
                worker has left the rows unlike.
        """
        n = self.num_envs
        seeds = seeds_of_rows(seed, n, self.task.name)
        mask, others = split_reset_mask(options, n, self.task.name)
        self._require_idle("reset")
        if mask is not None and self._failed:
            raise self._unlike()
        begun = np.arange(n) if mask is None else np.flatnonzero(mask)
        others = self._options_of_rows(others, begun)
        self._check_options(others, begun)
        parts = [
            (
                seeds and seeds[rows],
                None if mask is None else mask[rows],
                others if isinstance(others, Mapping) else others[rows],
            )
            for rows in self._slices
        ]
        info = self._join(self._changed(lambda: self.pool.ask("reset", parts)))
        seen = self.arrays.get(SEEN)
        self._failed &= mask is not None
        return seen, info if mask is None else restricted(info, mask)

    def _options_of_rows(self, options: Options, begun: np.ndarray) -> Options:
        """The options, a mapping for each row where the task takes a list of values for them."""
        if not options or not isinstance(options, Mapping):
            return options
        several = self.task.options_of_rows(options, len(begun))
        if len(several) != len(begun):
            return options
        own = dict(zip(begun.tolist(), several))
        return [own.get(row, {}) for row in range(self.num_envs)]

    def _check_options(self, options: Options, begun: np.ndarray) -> None:
        """Raise the task's ValueError where options would be refused, before a worker begins any.

        A dialogue is begun by a generator of its own, and thrown away.
        """
        for rows, common in rows_by_options(begun, options):
            for own in filter(None, self.task.options_of_rows(common, len(rows))):
                self.task.initial(np.random.default_rng(0), own)

    def step(self, actions: Any) -> Step:
        """One action in each dialogue, as the batched view has it."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Set the workers going.

        Raises:
            AlreadyPendingCallError: a step is under way.
            ResetNeeded: there are rows that cannot step.
            ValueError: the actions are not those of the action space.
        """
        self._require_idle("step_async")
        self._require_begun()
        if self._over.any():
            raise after_the_end(self.task.name, np.flatnonzero(self._over))
        self.arrays["action"][:] = check_actions(actions, self.action_space, self.task.name)
        self.pool.send("step")

    def step_wait(self, timeout: float | None = None) -> Step:
        """The result of the step under way.

        Args:
            timeout: seconds to wait; None for as long as it takes.

        Raises:
            NoAsyncCallError: no step is under way.
            multiprocessing.TimeoutError: it took longer. The step is still under way.
        """
        self.pool.check()
        if not self.pool.waiting:
            raise NoAsyncCallError(
                f"{self.task.name}: step_wait() was called, and no step is under way. Call "
                "step_async() first.",
                "step",
            )
        info = self._join(self._changed(lambda: self.pool.receive(timeout)))
        seen = self.arrays.get(SEEN)
        ends = [self.arrays[name].copy() for name in ("reward", "terminated", "truncated")]
        return seen, ends[0], ends[1], ends[2], info

    def action_masks(self) -> np.ndarray:
        """(N, V) or (N, A) bool; asked for once, masks come with each reply."""
        self._require_idle("action_masks")
        self._require_begun("action_masks")
        if not self._with_masks:
            self.pool.ask("masks")
            self._with_masks = True
        return self.arrays["mask"].copy()

    def get_state(self) -> list[Json]:
        """All dialogues as they stand, as those of the batched view; none before the first reset.

        Raises:
            ValueError: the task's state holds what its type hints do not say.
        """
        self._require_idle("get_state")
        if self._failed:
            raise self._unlike()
        return [dialogue for part in self.pool.ask("get_state") for dialogue in part]

    def set_state(self, state: list[Json]) -> None:
        """Go on from where another env was, a batched view or of any number of workers.

        Raises:
            ValueError: it is not the state of such an env.
        """
        check_count(state, self.num_envs, self.task.name)
        self._require_idle("set_state")
        parts = [(state[rows],) for rows in self._slices]
        self._changed(lambda: self.pool.ask("set_state", parts))
        self._begun, self._failed = bool(state), False

    def close_extras(self, **kwargs: Any) -> None:
        """End the workers, which gives the shared memory back."""
        if hasattr(self, "pool"):  # else its making failed; an older Gymnasium closes it then
            self.pool.close()
            self.task.release()

    def _require_idle(self, name: str) -> None:
        """Raise an error where a step is under way, or the pool cannot be asked."""
        self.pool.check()
        if self.pool.waiting:
            raise AlreadyPendingCallError(
                f"{self.task.name}: {name}() was called while a {self.pool.waiting} is under way. "
                "Call step_wait() for its result.",
                self.pool.waiting,
            )

    def _require_begun(self, call: str = "step") -> None:
        if self._failed:
            raise self._unlike()
        if not self._begun:
            raise reset_needed(self.task.name, BEFORE, call)

    def _unlike(self) -> ResetNeeded:
        return ResetNeeded(
            f"{self.task.name}: the last step or reset failed in a worker, and not in all rows "
            "alike. Call reset() without a mask, or set_state(), first."
        )

    def _changed(self, answers: Callable[[], list[Any]]) -> list[Any]:
        """The answers to a request that changes rows; an error of a worker leaves them unlike."""
        try:
            found = answers()
        except multiprocessing.TimeoutError:
            raise
        except Exception:
            self._failed = True
            raise
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._over = self.arrays["over"].copy()
        self._begun = True
        return found

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


def _slices(num_envs: int, workers: int) -> list[slice]:
    edges = [round(i * num_envs / workers) for i in range(workers + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def join_infos(infos: list[Info], slices: list[slice], blank: Info) -> Info:
    """Join the sparse infos of consecutive rows; see `dialgym.parallel.worker.sparse_info`.

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
