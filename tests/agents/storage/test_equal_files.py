"""Equal models have equal files, whenever and wherever they were trained."""

import time

import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from tests.support.by_day import by_day

SMALL = {
    "ppo": {"n_envs": 2, "n_steps": 8, "policy_kwargs": {"n_layer": 1, "n_embd": 8, "n_head": 1}},
    "dqn": {"n_envs": 2, "policy_kwargs": {"net_arch": [8]}},
}
ENVS = {"ppo": "dialgym/Wordle-20-v0", "dqn": "dialgym/SlotFilling-act-v0"}


@pytest.mark.parametrize("algo", by_day(SMALL, "dqn"))
def test_the_same_training_gives_the_same_bytes(tmp_path, monkeypatch, algo):
    files = []
    for clock, name in ((1e9, "first"), (2e9, "second")):
        monkeypatch.setattr(time, "localtime", lambda *_, at=clock: time.gmtime(at))
        monkeypatch.setattr(time, "time_ns", lambda at=clock: int(at * 1e9))
        folder = tmp_path / name
        given = {"hyperparameters": SMALL[algo], "log_dir": folder, "device": "cpu", "seed": 3}
        agents.train(ENVS[algo], algo, total_timesteps=200, progress_bar=False, **given)
        files.append((folder / "model.zip").read_bytes())
    assert files[0] == files[1]


def test_what_is_loaded_and_saved_again_has_the_same_bytes(tmp_path):
    env = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, seed=0)
    kwargs = SMALL["ppo"]["policy_kwargs"]
    model = agents.SequencePPO("GPTPolicy", env, n_steps=8, policy_kwargs=kwargs, device="cpu")
    model.learn(16)
    model.save(tmp_path / "a.zip")
    agents.load(tmp_path / "a.zip", device="cpu").save(tmp_path / "b.zip")
    agents.load(tmp_path / "b.zip", device="cpu").save(tmp_path / "c.zip")
    assert (tmp_path / "b.zip").read_bytes() == (tmp_path / "c.zip").read_bytes()
