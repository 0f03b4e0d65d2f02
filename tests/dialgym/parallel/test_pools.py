"""Batches over processes: equal to one batch, with errors that reach the caller."""

import os
import signal
import subprocess
import sys
from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

import dialgym
from dialgym.parallel.shared_arrays import SharedArrays, layout_of, open_memory
from tests.support.infos import same_infos

HEAVY = ("torch", "tokenizers", "pandas", "matplotlib")


WISHES = "tests.support.toy_acts:Wishes-act"
VIEWS = [
    ("Wordle-v0", {}, "SameStep", 150),
    pytest.param("SlotFilling-act-v0", {"env": 3}, "SameStep", 40, marks=pytest.mark.slow),
    (WISHES, {"action_masks": True}, "NextStep", 40),
    pytest.param("Wordle-v0", {}, "NextStep", 150, marks=pytest.mark.slow),
    pytest.param("SlotFilling-act-v0", {"learner": "user"}, "NextStep", 40, marks=pytest.mark.slow),
    pytest.param(WISHES, {}, "SameStep", 40, marks=pytest.mark.slow),
]


def any_actions(env, rng):
    """Mostly what the masks allow: tokens, one act each, or several."""
    masks = env.action_masks()
    if rng.random() < 0.2:
        return env.action_space.sample()
    if env.single_action_space.shape:
        return masks * rng.integers(0, 2, masks.shape)
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


@pytest.mark.parametrize(("env_id", "kwargs", "mode", "steps"), VIEWS, ids=str)
def test_shards_equal_one_batch(env_id, kwargs, mode, steps):
    kwargs = {**kwargs, "autoreset_mode": mode}
    shards = dialgym.make_vec(env_id, 7, workers=2, **kwargs)
    batch = dialgym.make_vec(env_id, 7, **kwargs)
    rng, ended = np.random.default_rng(0), 0
    with closing(shards):
        for name in ("acts", "act_names", "tokenizer"):
            assert hasattr(shards, name) == hasattr(batch, name)
        assert getattr(shards, "act_names", ()) == getattr(batch, "act_names", ())
        for env in (shards, batch):
            with pytest.raises(ResetNeeded, match=r"action_masks\(\) was called before the first"):
                env.action_masks()
        assert np.array_equal(shards.reset(seed=5)[0], batch.reset(seed=5)[0])
        for step in range(steps):
            actions = any_actions(batch, rng)
            *ours, info = shards.step(actions)
            *theirs, expected = batch.step(actions)
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs))
            assert all(a.dtype == b.dtype for a, b in zip(ours, theirs))
            same_infos(info, expected)
            if step > steps // 2:
                assert np.array_equal(shards.action_masks(), batch.action_masks())
            ended += int((ours[2] | ours[3]).sum())
        assert ended > 7


def test_shards_share_each_part_of_a_dict_of_observations():
    boxes = {"tokens": gym.spaces.Box(0, 9, (5,), np.int32), "image": gym.spaces.Box(0, 1, (2, 3))}
    layout = layout_of(4, gym.spaces.Dict(boxes), gym.spaces.Discrete(3))
    with open_memory(layout) as file:
        mine, other = (SharedArrays(file.fileno(), layout) for _ in range(2))
    written = {"tokens": np.full((2, 5), 7), "image": np.full((2, 2, 3), 0.5)}
    other.put("observation", slice(1, 3), written)
    for key, value in mine.get("observation").items():
        assert value.dtype == boxes[key].dtype
        assert np.array_equal(value[1:3], written[key])
        assert not value[[0, 3]].any()
        assert np.array_equal(mine.get("observation", 1)[key], written[key][0])


def test_utterance_views_are_not_sharded():
    with pytest.raises(ValueError, match=r"token and act views can be .*'dialgym/SlotFilling-utt"):
        dialgym.make_vec("SlotFilling-utterance-v0", 4, workers=2)


def test_workers_that_cannot_start_are_one_clear_error(monkeypatch, capfd):
    monkeypatch.setattr("dialgym.parallel.pool.START", "raise SystemExit('no such module')")
    with pytest.raises(RuntimeError, match=r"environment worker 1 of 2 could not start"):
        gym.make_vec("dialgym/Wordle-20-v0", 2, workers=2)
    assert "no such module" in capfd.readouterr().err


def test_a_killed_worker_is_one_clear_error():
    shards = gym.make_vec("dialgym/Wordle-v0", 2, workers=2)
    shards.reset(seed=0)
    os.kill(shards.pool.workers[1].process.pid, signal.SIGKILL)
    shards.pool.workers[1].process.wait(10)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"environment worker 2 of 2 ended unexpected.*-9"):
            shards.step(np.array([5, 5]))
    shards.close()
    with pytest.raises(ClosedEnvironmentError, match="was closed; make another"):
        shards.reset()


SCRIPT = """
import gymnasium, dialgym, pathlib
pool = gymnasium.make_vec("dialgym/Wordle-20-v0", 4, workers=2)
pool.reset(seed=0)
pool.step([5] * 4)
pids = [worker.process.pid for worker in pool.pool.workers]
print(*pids, *[pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in pids])
"""


def test_a_script_needs_no_main_guard_and_leaves_nothing_behind():
    """Its workers load nothing heavy."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    *pids, maps = run.stdout.split(maxsplit=2)
    assert len(pids) == 2
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert "/numpy/" in maps
    assert not [name for name in HEAVY if f"/{name}/" in maps]
