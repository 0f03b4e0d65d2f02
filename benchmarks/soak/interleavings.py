"""Random interleavings of calls, exceptions and interrupts on a sharded pool, against its twin.

The twin is the batch of as many rows in this process. After each call both are in the same state,
and give the same results or the same class of error.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

import dialgym
from benchmarks.soak.budget import Budget, Tally
from benchmarks.soak.faults import Faulty

POOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("dialgym/Wordle-20-v0", {"autoreset_mode": "Disabled", "simulator": Faulty()}),
    ("dialgym/Wordle-20-v0", {"autoreset_mode": "SameStep"}),
    ("dialgym/SlotFilling-act-v0", {"autoreset_mode": "NextStep", "simulator": Faulty()}),
)
ROWS, WORKERS, CALLS = 3, 2, 10
LATEST = 0.004
"""Seconds after which an interrupt has come."""


def interleavings(budget: Budget, rng: np.random.Generator, folder: Path) -> Iterator[Tally]:
    """An attack; a tally of each interleaving."""
    pairs = [Pair(*pool) for pool in POOLS]
    try:
        while budget:
            for pair in pairs:
                tally = Tally("interleavings of calls and interrupts", tries=1)
                with tally.noting(pair.env_id):
                    pair.interleave(rng)
                if tally.failures:
                    tally.failures[-1] += f" after {', '.join(pair.calls)}"
                    pair.make()
                yield tally
    finally:
        for pair in pairs:
            pair.pool.close()


class Pair:
    """A pool and its twin.

    Args:
        env_id: of a token or act view.
        kwargs: of both.
    """

    def __init__(self, env_id: str, kwargs: dict[str, Any]) -> None:
        self.env_id, self.kwargs = env_id, kwargs
        self.pool: Any = None
        self.calls: list[str] = []  # of the interleaving under way
        self.make()

    def make(self) -> None:
        """Begin with a new pool."""
        if self.pool is not None:
            self.pool.close()
        self.pool = dialgym.make_vec(self.env_id, ROWS, workers=WORKERS, **self.kwargs)
        self.twin: Any = dialgym.make_vec(self.env_id, ROWS, **self.kwargs)

    def interleave(self, rng: np.random.Generator) -> None:
        """Some random calls; an AssertionError where pool and twin differ."""
        self.rng, self.calls = rng, []
        self._begin()
        for _ in range(CALLS):
            call: Callable[[], None] = CALLED[int(rng.integers(len(CALLED)))].__get__(self)
            self.calls.append(call.__name__.strip("_"))
            call()

    def _begin(self) -> None:
        """Everything anew, whatever was."""
        error: Any = True
        while error is not None:  # a speaker can fail at the first word
            seed = int(self.rng.integers(2**31))
            error, value = _outcome(partial(self.pool.reset, seed=seed))
            _alike((error, value), _outcome(partial(self.twin.reset, seed=seed)))

    def _step(self) -> None:
        actions = self._actions()
        self._same(lambda env: env.step(actions), self.pool)

    def _step_with_wrong_calls(self) -> None:
        """Between its start and its end the step is pending, and says so."""
        actions = self._actions()
        if self._refused(lambda: self.pool.step_async(actions), actions):
            return
        pool = self.pool
        for wrong in (pool.reset, pool.action_masks, lambda: pool.step_async(actions)):
            if self.rng.random() < 0.5:
                _raises(AlreadyPendingCallError, wrong)
        self._compare(lambda: pool.step_wait(), actions)
        _raises(NoAsyncCallError, pool.step_wait)

    def _step_that_times_out(self) -> None:
        actions = self._actions()
        if self._refused(lambda: self.pool.step_async(actions), actions):
            return

        def wait() -> Any:
            for _ in range(3):
                try:
                    return self.pool.step_wait(timeout=self.rng.random() * LATEST)
                except multiprocessing.TimeoutError:
                    pass
            return self.pool.step_wait()

        self._compare(wait, actions)

    def _interrupted_step(self) -> None:
        actions, before = self._actions(), self._requests()
        ended, result = self._interrupted(lambda: self.pool.step(actions))
        if ended:
            self._compare(result, actions)
        elif self.pool.pool.pending is not None and self.rng.random() < 0.5:
            self._compare(self.pool.step_wait, actions)
        elif self._requests() > before:  # the workers have taken it, and its result is lost
            failed, _ = _outcome(lambda: self.twin.step(actions))
            seed = int(self.rng.integers(99)) if failed or self.rng.random() < 0.5 else None
            self._same(lambda env: env.reset(seed=seed), self.pool)

    def _interrupted_reset(self) -> None:
        before = self._requests()
        ended, result = self._interrupted(self.pool.reset)
        if ended:
            _alike(_outcome(result), _outcome(self.twin.reset))
        elif self._requests() > before:
            _outcome(self.twin.reset)
        self._same(lambda env: env.reset(), self.pool)

    def _interrupted_masks(self) -> None:
        self._interrupted(self.pool.action_masks)
        self._masks()

    def _masks(self) -> None:
        assert np.array_equal(self.pool.action_masks(), self.twin.action_masks()), "masks"

    def _refused_reset(self) -> None:
        seeds = [1, 2, -3]
        self._same(lambda env: env.reset(seed=seeds), self.pool)

    def _reset_of_some(self) -> None:
        mask = self.rng.random(ROWS) < 0.5
        mask[self.rng.integers(ROWS)] = True
        self._same(lambda env: env.reset(options={"reset_mask": mask}), self.pool)

    def _there_and_back(self) -> None:
        states = self.pool.get_state(), self.twin.get_state()
        self._step()
        for env, state in zip((self.pool, self.twin), states):
            env.set_state(state)

    def _actions(self) -> np.ndarray:
        masks = self.twin.action_masks()
        return np.array([self.rng.choice(np.flatnonzero(mask)) for mask in masks])

    def _requests(self) -> int:
        return int(self.pool.pool._request.number)

    def _same(self, call: Callable[[Any], Any], pool: Any) -> None:
        """Both answer alike; after an error of a step everything begins anew."""
        first, second = (_outcome(partial(call, env)) for env in (pool, self.twin))
        _alike(first, second)
        if pool.pool.failed:
            self._begin()

    def _compare(self, wait: Callable[[], Any], actions: np.ndarray) -> None:
        first, second = _outcome(wait), _outcome(lambda: self.twin.step(actions))
        _alike(first, second)
        if self.pool.pool.failed:
            self._begin()

    def _refused(self, call: Callable[[], Any], actions: np.ndarray) -> bool:
        """Whether both refuse a step, as rows are over."""
        error, value = _outcome(call)
        if error is not None:
            _alike((error, value), _outcome(lambda: self.twin.step(actions)))
        return error is not None

    def _interrupted(self, call: Callable[[], Any]) -> tuple[bool, Callable[[], Any]]:
        """Whether a call has ended before an interrupt came, and what gives its result again."""
        try:
            with alarm(float(self.rng.random() * LATEST)):
                error, value = _outcome(call)
        except Alarm:
            return False, call

        def again() -> Any:
            if error is not None:
                raise value
            return value

        return True, again


CALLED = (
    Pair._step,
    Pair._step,
    Pair._step_with_wrong_calls,
    Pair._step_that_times_out,
    Pair._interrupted_step,
    Pair._interrupted_step,
    Pair._interrupted_reset,
    Pair._interrupted_masks,
    Pair._masks,
    Pair._refused_reset,
    Pair._reset_of_some,
    Pair._there_and_back,
)


class Alarm(BaseException):
    """An interrupt, as KeyboardInterrupt is one."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise an `Alarm` after so many seconds, wherever this process is then."""
    armed = True

    def ring(*_: Any) -> None:
        if armed:
            raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _outcome(call: Callable[[], Any]) -> tuple[Any, Any]:
    """None and what the call gives, or the class of its error and that."""
    try:
        return None, call()
    except Exception as error:
        return type(error), error


def _raises(expected: type[Exception], call: Callable[[], Any]) -> None:
    error, value = _outcome(call)
    assert error is expected, f"expected {expected.__name__}; got {value!r}"


def _alike(first: tuple[Any, Any], second: tuple[Any, Any]) -> None:
    """The same class of error, or the same results."""
    assert first[0] is second[0], f"the pool: {first[1]!r}; its twin: {second[1]!r}"
    if first[0] is None:
        for one, other in zip(first[1][:-1], second[1][:-1], strict=True):
            assert np.array_equal(one, other), "observations, rewards or ends"
        _alike_infos(first[1][-1], second[1][-1])


def _alike_infos(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys(), "names of infos"
    for name, value in first.items():
        if isinstance(value, dict):
            _alike_infos(value, second[name])
            continue
        rows = np.flatnonzero(first.get(f"_{name}", np.ones(len(value), bool)))
        same = all(np.array_equal(value[row], second[name][row]) for row in rows)
        assert same, f"info {name!r}"
