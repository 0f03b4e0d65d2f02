"""Batches as a `VecEnv` of Stable-Baselines3, in one process and over several."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.registry import entry_of

sb3 = pytest.importorskip("stable_baselines3")
from stable_baselines3.common.logger import KVWriter, Logger  # noqa: E402
from stable_baselines3.common.vec_env import VecMonitor, is_vecenv_wrapped  # noqa: E402

TOLD = {"truths": True, "anchors": True, "values": True}


@pytest.mark.parametrize(
    ("env_id", "kwargs"), [("Wordle-v0", {}), ("SlotFilling-act-v0", {}), ("Wordle-20-v0", TOLD)]
)
def test_sb3_pool_equals_sb3s_own(env_id, kwargs):
    """The batched VecEnv against stock DummyVecEnv over single envs, with infos of utterances."""
    ours = dialgym.sb3_vec_env(env_id, 3, seed=4, **kwargs)
    stock = dialgym.make_sb3_pool(env_id, 3, vec_env="dummy", seed=4, env_kwargs=kwargs)
    rng = np.random.default_rng(0)
    assert np.array_equal(ours.reset(), stock.reset())
    assert ours.reset_infos == stock.reset_infos
    for _ in range(120):
        masks = [np.stack(pool.env_method("action_masks")) for pool in (ours, stock)]
        assert np.array_equal(*masks)
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in masks[0]])
        observations, rewards, dones, infos = ours.step(actions)
        expected = stock.step(actions)
        assert np.array_equal(observations, expected[0])
        assert np.array_equal(rewards, expected[1])
        assert np.array_equal(dones, expected[2])
        for info, other in zip(infos, expected[3]):
            assert _episode(info) == pytest.approx(_episode(other))
            # ours are empty within an utterance
            assert bool(info) == bool(other["turn"] or kwargs)
            if not info:
                continue
            last = (one.pop("terminal_observation", 0) for one in (info, other))
            assert np.array_equal(*last)
            other.setdefault("TimeLimit.truncated", False)
            info.setdefault("TimeLimit.truncated", False)
            assert info == other
        assert ours.reset_infos == stock.reset_infos


def _episode(info):
    """Return and length at the end of an episode, taken out of an info; not the clock's time."""
    found = info.pop("episode", {"t": 0.0})
    return {name: float(value) for name, value in found.items() if name != "t"}


def test_what_learns_in_a_pool_logs_the_returns_of_dialogues():
    pool = dialgym.sb3_vec_env("SlotFilling-act-v0", 4, seed=0)
    ended, logged = [], []

    def note(local, _):
        ended.extend(info["episode"] for info in local["infos"] if "episode" in info)
        return True

    class Kept(KVWriter):
        def write(self, key_values, key_excluded, step=0):
            logged.append(dict(key_values))

    model = sb3.A2C("MlpPolicy", pool, n_steps=20, seed=0)
    model.set_logger(Logger(None, [Kept()]))
    model.learn(400, note, log_interval=5)
    [line] = logged
    assert len(ended) > 3
    assert line["rollout/ep_rew_mean"] == pytest.approx(np.mean([e["r"] for e in ended]))
    assert line["rollout/ep_len_mean"] == pytest.approx(np.mean([e["l"] for e in ended]))


def test_a_pool_is_monitored_once_and_says_so():
    pool = dialgym.sb3_vec_env("SlotFilling-act-v0", 2, seed=0)
    assert is_vecenv_wrapped(pool, VecMonitor)
    assert not isinstance(pool.venv, VecMonitor)
    plain = dialgym.sb3_vec_env("SlotFilling-act-v0", 2, seed=0, monitor=False)
    assert not is_vecenv_wrapped(plain, VecMonitor)
    assert repr(plain) == repr(pool)
    assert np.array_equal(pool.reset(), plain.reset())
    assert pool.reset_infos == plain.reset_infos
    returns, lengths = np.zeros(2), np.zeros(2, int)
    for _ in range(60):
        *ours, infos = pool.step(np.zeros(2, int))
        *theirs, expected = plain.step(np.zeros(2, int))
        assert all(map(np.array_equal, ours, theirs))
        returns, lengths = returns + theirs[1], lengths + 1
        for row, (info, other) in enumerate(zip(infos, expected)):
            wanted = {"r": returns[row], "l": lengths[row]} if theirs[2][row] else {}
            assert _episode(info) == wanted
            assert info.keys() == other.keys()
        returns[theirs[2]] = lengths[theirs[2]] = 0


def test_truncation_is_told_from_termination():
    pool = dialgym.sb3_vec_env("dialgym/Wordle-v0", 2, seed=0, window=40)
    pool.reset()
    for _ in range(18):
        _, _, dones, infos = pool.step(np.full(2, 30))
    assert dones.all()
    assert all(info["TimeLimit.truncated"] for info in infos)


def test_maskable_ppo_plays_only_words():
    contrib = pytest.importorskip("sb3_contrib")
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 4, seed=0)
    seen = []
    model = contrib.MaskablePPO("MlpPolicy", pool, n_steps=32, batch_size=64, n_epochs=1, seed=0)

    def collect(local, _):
        seen.extend(info["reply"] for info in local["infos"] if "reply" in info)
        return True

    model.learn(256, callback=collect)
    pool.close()
    assert len(seen) > 20
    assert "invalid" not in seen


STOCK = """
import os, dialgym
if __name__ == "__main__":
    pool = dialgym.make_sb3_pool("dialgym/Wordle-20-v0", 4, seed=0)
    pool.reset()
    for worker in pool.processes:
        with open(f"/proc/{worker.pid}/stat") as file:
            used = sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        print(used / os.sysconf("SC_CLK_TCK"))
    pool.close()
"""


@pytest.mark.slow
def test_the_workers_of_a_stock_pool_do_not_import_torch_again(tmp_path):
    """That costs each some three seconds of CPU time."""
    script = tmp_path / "pool.py"
    script.write_text(STOCK)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    used = [float(line) for line in run.stdout.split()]
    assert len(used) == 4
    assert max(used) < 1


def test_a_spec_keeps_the_settings_that_it_was_made_with():
    spec = gym.make("dialgym/Wordle-20-v0", turns=4, action_masks=True).spec
    pools = dialgym.sb3_vec_env(spec, 2), dialgym.make_sb3_pool(spec, 1, vec_env="dummy")
    ours, theirs = (pool.unwrapped for pool in pools)
    for env in (dialgym.make(spec), dialgym.make_vec(spec, 2), ours.env, theirs.envs[0]):
        view = env.unwrapped
        assert (view.task.turns, view.options.action_masks) == (4, True)
        assert view.spec.kwargs["turns"] == 4
    assert dialgym.make_vec(entry_of(spec), 2).unwrapped.task.turns == 4  # as for evaluations
