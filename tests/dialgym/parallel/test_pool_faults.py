"""Sharded pools: interrupted, forked, killed, or given what cannot be sent."""

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

import dialgym
from dialgym.language.tokenizers import END
from dialgym.parallel.pool import WorkerPool
from dialgym.parallel.worker import Shard, main, portable
from tests.support.faulty_users import FaultyUser, ServiceError
from tests.support.waiting import wait_until

WORDS = "dialgym/Wordle-20-v0"
WISHES = "tests.support.toy_acts:Wishes-act"
ALL, ONE = np.ones(4, np.int8), np.eye(4, dtype=np.int8)[0]


@pytest.fixture(scope="module")
def pools():
    """A pool of two workers and its twin in this process."""
    pool = gym.make_vec(WORDS, 5, workers=2, autoreset_mode="Disabled")
    yield pool, gym.make_vec(WORDS, 5, autoreset_mode="Disabled")
    pool.close()


@contextmanager
def stopped(pool):
    """The last worker stands still."""
    pid = pool.pool.workers[-1].process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first[:-1], second[:-1], strict=True))


def goes_on_alike(pool, twin):
    assert np.array_equal(pool.action_masks(), twin.action_masks())
    for action in (3, 30, 4):
        assert same(pool.step(np.full(5, action)), twin.step(np.full(5, action)))


def test_pending_steps_are_kept_and_told(pools):
    pool, twin = pools
    same(pool.reset(seed=1), twin.reset(seed=1))
    with pytest.raises(NoAsyncCallError, match=r"step_wait\(\) was called, and no step is under"):
        pool.step_wait()
    pool.step_async(np.full(5, 7))
    for method in (pool.reset, pool.get_state, pool.action_masks):
        with pytest.raises(AlreadyPendingCallError, match=r"called while a step is under way\. "):
            method()
    with pytest.raises(AlreadyPendingCallError, match=r"Call step_wait\(\) for its result\.$"):
        pool.step(np.full(5, 8))
    assert same(pool.step_wait(), twin.step(np.full(5, 7)))
    goes_on_alike(pool, twin)


def test_a_step_that_takes_too_long_can_be_waited_for(pools):
    pool, twin = pools
    same(pool.reset(seed=2), twin.reset(seed=2))
    with stopped(pool):
        pool.step_async(np.full(5, 7))
        with pytest.raises(multiprocessing.TimeoutError, match="worker 2 of 2 is still at its"):
            pool.step_wait(timeout=0.01)
    assert same(pool.step_wait(), twin.step(np.full(5, 7)))
    goes_on_alike(pool, twin)


class Alarm(TimeoutError):
    """An OSError, as those are that Python raises where a connection breaks."""


@contextmanager
def alarm(seconds):
    """An exception of a signal handler."""

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


INTERRUPTED = {
    "step": lambda pool: pool.step(np.full(5, 7)),
    "reset": lambda pool: pool.reset(seed=[1, 2, 3, 4, 5]),
    "get_state": lambda pool: pool.get_state(),
}
CALLS = [
    pytest.param(call, id=name, marks=() if name == "step" else pytest.mark.slow)
    for name, call in INTERRUPTED.items()
]


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_pool_is_broken_and_closes(call):
    pool = gym.make_vec(WORDS, 5, workers=2)
    pool.reset(seed=2)
    with stopped(pool), pytest.raises(Alarm), alarm(0.05):
        call(pool)
    for method in (pool.reset, pool.action_masks, pool.step_wait, lambda: call(pool)):
        with pytest.raises(RuntimeError, match=r"^the pool was interrupted .* make it again"):
            method()
    pool.close()
    assert all(worker.process.poll() is not None for worker in pool.pool.workers)


def test_a_refused_reset_changes_no_row_of_any_worker(pools):
    pool, twin = pools
    same(pool.reset(seed=4), twin.reset(seed=4))
    with pytest.raises(gym.error.Error, match="-5"):
        pool.reset(seed=[1, 2, 3, 4, -5])
    with pytest.raises(ValueError, match=r"expected one of its .* answers; got 'zzzzz'"):
        pool.reset(seed=[1, 2, 3, 4, 5], options=[{}, {}, {}, {}, {"word": "zzzzz"}])
    mask = {"reset_mask": np.array([True, False, False, True, False])}
    assert same(pool.reset(options=mask), twin.reset(options=mask))
    with pytest.raises(ValueError, match="values from 5 to 99"):
        pool.step(np.array([5, 5, 5, 5, 99]))
    goes_on_alike(pool, twin)


def test_rows_that_are_over_stop_all_workers(pools):
    """Without autoreset, a step that cannot be taken is taken by no worker."""
    pool, twin = pools
    options = [{"word": twin.task.answers[1]}] * 4 + [{"word": twin.task.answers[0]}]
    same(pool.reset(seed=4, options=options), twin.reset(seed=4, options=options))
    tokens = [*twin.tokenizer.encode(twin.task.answers[0]), END]
    for token in tokens[: twin.steps_per_utterance]:
        result = twin.step(np.full(5, token))
        assert same(pool.step(np.full(5, token)), result)
    assert result[2].tolist() == [False] * 4 + [True]
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=r"episodes of rows \[4\], and autoreset is disabled"):
            pool.step(np.full(5, 3))
    options = {"reset_mask": result[2]}
    assert same(pool.reset(options=options), twin.reset(options=options))
    goes_on_alike(pool, twin)


def test_a_reset_of_some_rows_shows_the_others_as_they_were_set(pools):
    pool, _ = pools
    seen, _ = pool.reset(seed=0)
    state = pool.get_state()
    pool.step(np.full(5, 7))
    pool.set_state(state)
    after, _ = pool.reset(options={"reset_mask": np.arange(5) == 0})
    assert np.array_equal(after[1:], seen[1:])


def test_a_state_goes_on_in_another_number_of_processes(pools):
    pool, twin = pools
    for seed, (one, other) in enumerate((pools, pools[::-1])):
        one.reset(seed=seed)
        other.reset(seed=9)
        other.step(np.arange(5, 10))
        one.set_state(other.get_state())
        goes_on_alike(pool, twin)


def test_each_row_has_its_own_options(pools):
    pool, twin = pools
    words = twin.task.answers[:5]
    options = [{"word": word} for word in words]
    for env in pools:
        env.reset(seed=0, options=options)
    secrets = [state.secret for state in twin.dialogues.states(np.arange(5))]
    assert [twin.task.answers[secret] for secret in secrets] == list(words)
    goes_on_alike(pool, twin)
    for env in pools:
        with pytest.raises(ValueError, match=r"mapping for all rows, or a list of 5, .* got 4"):
            env.reset(options=options[:4])


def test_each_row_has_its_own_value_of_an_option():
    """Of a task that takes a list of them: one for each row that begins."""
    settings = {"autoreset_mode": "Disabled"}
    pool = gym.make_vec("dialgym/Comments-v0", 3, workers=2, **settings)
    twin = gym.make_vec("dialgym/Comments-v0", 3, **settings)
    mask = np.array([False, True, True])
    for options in ({"index": [4, 5, 6]}, {"index": [7, 8], "reset_mask": mask}, {"index": 9}):
        assert same(pool.reset(seed=0, options=options), twin.reset(seed=0, options=options))
    for env in (pool, twin):
        with pytest.raises(ValueError, match=r"one for each of the 3 rows; got 2"):
            env.reset(options={"index": [4, 5]})
    pool.close()


def test_errors_that_cannot_be_sent_are_named():
    error = portable(ServiceError("the service of users", 503), "In a worker")
    assert type(error) is RuntimeError
    assert "raised tests.support.faulty_users.ServiceError: the service of users" in str(error)
    assert type(portable(ValueError("bad"), "In a worker")) is ValueError


def test_a_worker_closes_its_batch_when_its_parent_hangs_up(monkeypatch):
    closed = []

    class Batch(Shard):
        def close(self):
            closed.append(self)

    monkeypatch.setattr("dialgym.parallel.worker.Shard", Batch)
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    with theirs:
        main(os.dup(theirs.fileno()), 0)
    assert len(closed) == 1


def test_errors_of_one_worker_leave_its_rows_apart():
    pool = dialgym.make_vec(WISHES, 3, workers=2, simulator=FaultyUser())
    try:
        pool.reset(seed=0)
        with pytest.raises(RuntimeError, match=r"failed in row 0: ServiceError: .* 503") as failed:
            pool.step(np.array([ONE, ONE, ALL]))
        (note,) = failed.value.__notes__
        assert note.startswith("In the environment worker of rows 2 to 2, its rows 0 to 0:\nTrace")
        with pytest.raises(ResetNeeded, match="the last step or reset failed"):
            pool.step(np.array([ONE, ONE, ONE]))
        with pytest.raises(ResetNeeded, match="the last step or reset failed"):
            pool.reset(options={"reset_mask": np.array([True, False, False])})
        pool.reset(seed=0)
        pool.step(np.array([ONE, ONE, ONE]))
    finally:
        pool.close()


class Homeless(FaultyUser):
    """As if the script that was started had defined it."""

    __module__ = "__main__"


def test_simulators_of_a_script_are_named(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "Homeless", Homeless, raising=False)
    for simulator in (Homeless(), "__main__:Homeless"):
        with pytest.raises(ValueError, match=r"^workers: other processes cannot .*Homeless"):
            dialgym.make_vec(WISHES, 3, workers=1, simulator=simulator)
    one = FaultyUser()
    one.helper = Homeless()
    with pytest.raises(ValueError, match=r"^workers: other processes cannot import what they are"):
        dialgym.make_vec(WISHES, 3, workers=1, simulator=one)
    one.helper = lambda: None
    with pytest.raises(ValueError, match=r"^workers: what 'make' takes cannot be sent to other"):
        dialgym.make_vec(WISHES, 3, workers=1, simulator=one)
    with pytest.raises(
        ValueError, match=r"^workers: other processes cannot import .*<lambda>, rew"
    ):
        dialgym.make_vec("DailyDialog-v0", 3, workers=1, rewards={"mine": lambda text: 1.0})


def test_all_workers_are_started_before_one_is_waited_for(monkeypatch):
    started = []
    ask = WorkerPool.ask
    monkeypatch.setattr(
        WorkerPool, "ask", lambda self, *a: started.append(len(self.workers)) or ask(self, *a)
    )
    gym.make_vec(WORDS, 2, workers=2).close()
    assert started == [2]


FORKS = """
import os, sys, gymnasium, dialgym
pool = gymnasium.make_vec("dialgym/Wordle-20-v0", 4, workers=2)
pool.reset(seed=0)
for way in ("close", "delete", "exit", "use"):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, way
        continue
    if way == "close":
        pool.close()
    elif way == "delete":
        del pool
    elif way == "use":
        try:
            pool.reset()
        except RuntimeError as error:
            assert "of which this one is a fork" in str(error), error
        else:
            sys.exit(1)
    sys.exit(0)
pool.step([5] * 4)
pool.close()
print("whole")
"""


@pytest.mark.slow
def test_forked_children_leave_the_workers_alone():
    run = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    assert run.stdout == "whole\n"


KILLED = """
import os, signal, gymnasium, dialgym
pool = gymnasium.make_vec("dialgym/Wordle-20-v0", 4, workers=2)
pool.reset(seed=0)
print(*[worker.process.pid for worker in pool.pool.workers], flush=True)
if os.fork() == 0:
    os.close(1)
    signal.alarm(40)
    signal.pause()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_parent_leaves_neither_workers_nor_files(tmp_path):
    """Even where a fork of it lives on."""
    shared = set(os.listdir("/dev/shm"))
    run = subprocess.run(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        process_group=0,
    )
    assert run.returncode == -signal.SIGKILL
    pids = run.stdout.split()
    assert len(pids) == 2
    wait_until(lambda: not any(map(_lives, pids)))
    assert not os.listdir(tmp_path)
    assert not [name for name in set(os.listdir("/dev/shm")) - shared if "dialgym" in name]


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
