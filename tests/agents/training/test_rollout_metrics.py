"""Logs of a run's utterances: parts of the reward, lengths, and your own measures."""

import json

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import dialgym
from agents import train
from agents.training.rollout_metrics import (
    BUILT_IN,
    lengths,
    make_metrics,
    measures,
    parts_of_the_reward,
)
from agents.training.tracking import ID_FILE
from dialgym.views.making import make_view
from tests.support.by_day import at_night

ID = "dialgym/Wordle-20-v0"
HERE = "tests.agents.training.test_rollout_metrics"
TINY = {"n_layer": 1, "n_embd": 16}
# Rollouts end within utterances.
SHORT = {"n_steps": 13, "batch_size": 288, "n_epochs": 1, "policy_kwargs": TINY}
SHORT["learning_rate"] = 0.001
ARGUMENTS = {"n_envs": 8, "progress_bar": False}


class Recorder:
    """Keeps what it is given."""

    def __init__(self, name: str = "mine/utterances"):
        self.name, self.seen = name, []

    def __call__(self, infos):
        self.seen.append(infos)
        return {self.name: len(infos)}


class Stateless:
    pass


def words(infos):
    return "x"


def logged(folder):
    events = EventAccumulator(str(folder / "tensorboard"), {"scalars": 0}).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_figures_are_means_over_utterances():
    infos = [
        {"reward_components": {"a": 1.0, "b": -0.5}, "utterance_tokens": 3},
        {"reward_components": {"a": 0.5}, "utterance_tokens": 6},
    ]
    assert parts_of_the_reward(infos) == {"reward/a": 0.75, "reward/b": -0.5}
    assert lengths(infos) == {"rollout/utterance_tokens": 4.5}


def test_measures_are_means_over_the_dialogues_that_have_them():
    infos = [
        {"transcript": "", "metrics": {"match": 0.0, "recall": 0.0}},
        {"transcript": "user: bye", "metrics": {"match": 1.0, "recall": -1.0}},
        {"transcript": "user: bye", "metrics": {"match": 0.5, "recall": 0.25}},
        {"transcript": "of a task without any"},
    ]
    assert measures(infos) == {"dialogue/match": 0.75, "dialogue/recall": 0.25}
    assert measures(infos[:1]) == {}


def played(env, rng, steps=60):
    """Every info with components, by row and time."""
    env.seed(3)
    env.reset()
    found = []
    masks = [np.flatnonzero(mask) for mask in env.env_method("action_masks")]
    for step in range(steps):
        actions = np.array([allowed[int(rng.integers(len(allowed)))] for allowed in masks])
        _, rewards, _, infos = env.step(actions)
        for row, info in enumerate(infos):
            if info.get("turn"):
                assert sum(info["reward_components"].values()) == pytest.approx(rewards[row])
                found.append((step, row, info["utterance"], info["reward_components"]))
        masks = [np.flatnonzero(mask) for mask in env.env_method("action_masks")]
    env.close()
    return found


def test_parts_of_the_reward_come_through_every_pool():
    """Ours, in this process and in others, and those of Stable-Baselines3."""
    make = [lambda: make_view(ID)] * 4
    pools = [
        dialgym.sb3_vec_env(ID, 4),
        dialgym.sb3_vec_env(ID, 4, workers=2),
        DummyVecEnv(make),
        SubprocVecEnv(make),
    ]
    runs = [played(pool, np.random.default_rng(0)) for pool in pools]
    assert len(runs[0]) == 40  # five letters and an end
    assert {name for *_, parts in runs[0] for name in parts} >= {"wrong guess"}
    assert runs[1] == runs[0]
    assert runs[2] == runs[3] == runs[0]


@pytest.mark.parametrize(("algo", "workers"), [("ppo", 0), at_night(("ppo", 2)), ("grpo", 0)])
def test_a_run_logs_what_its_utterances_were(algo, workers, tmp_path):
    recorder = Recorder()
    more = {"group_size": 4, "n_steps": 128} if algo == "grpo" else {}
    given = {"workers": workers, "metrics": [recorder], "env_kwargs": {"constraint": None}}
    given |= {"hyperparameters": {**SHORT, **more}, "log_dir": tmp_path}
    train(ID, algo, total_timesteps=13 * 8 * 3, **given, **ARGUMENTS)
    found = logged(tmp_path)
    assert len(recorder.seen) >= 1
    assert [value for _, value in found["mine/utterances"]] == [len(i) for i in recorder.seen]
    for infos, (_, value) in zip(recorder.seen, found["rollout/utterance_tokens"], strict=True):
        said = [info["utterance_tokens"] for info in infos]
        assert value == pytest.approx(np.mean(said))
        texts = [len(info["utterance"]) for info in infos]
        assert all(0 <= n - text <= 1 for n, text in zip(said, texts, strict=True))  # <end>
        assert len(set(said)) > 1
    for infos, (_, value) in zip(recorder.seen, found["reward/wrong guess"], strict=True):
        parts = [info["reward_components"] for info in infos]
        assert value == pytest.approx(np.mean([p["wrong guess"] for p in parts if p]), abs=1e-6)


def test_a_resumed_run_logs_what_it_would_have_logged(tmp_path):
    more = {"hyperparameters": SHORT, "checkpoint_every": 1, **ARGUMENTS}
    train(ID, "ppo", total_timesteps=104 * 4, log_dir=tmp_path / "whole", **more)
    train(ID, "ppo", total_timesteps=104 * 2, log_dir=tmp_path / "two", **more)
    train(ID, "ppo", total_timesteps=104 * 4, log_dir=tmp_path / "two", resume=True, **more)
    for name in ("reward/wrong guess", "rollout/utterance_tokens"):
        whole, two = (logged(tmp_path / folder)[name] for folder in ("whole", "two"))
        assert dict(two) == dict(whole)
        assert len(whole) == 4


def test_measures_come_from_a_file_of_hyperparameters(tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text(
        "default: {n_timesteps: 104, n_envs: 8, policy: agents.GPTPolicy, n_steps: 13,\n"
        "  policy_kwargs: {n_layer: 1, n_embd: 16},\n"
        "  metrics: {'tests.agents.training.test_rollout_metrics:Recorder': {name: mine/count}}}\n"
    )
    given = {"hyperparameters_file": file, "log_dir": tmp_path / "run", "progress_bar": False}
    with pytest.raises(ValueError, match=r"default of .*mine.yml: it names 'tests\..*:Recorder'"):
        train(ID, "ppo", **given)
    train(ID, "ppo", trust=True, **given)
    assert len(logged(tmp_path / "run")["mine/count"]) == 1


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([f"{HERE}:Nothing"], "metrics: expected a dotted name such as my_package.metrics:Pol"),
        ([f"{HERE}:Stateless"], f"expected '{HERE}:Stateless' to be callable"),
        ({f"{HERE}:Recorder": {"nam": 1}}, f"'{HERE}:Recorder' cannot be made: .*'nam'"),
        (f"{HERE}:Recorder", rf"expected a list such as \['{HERE}:Recorder'\]"),
    ],
)
def test_measures_that_cannot_be_are_one_clear_error(chosen, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(ID, "ppo", total_timesteps=104, log_dir=tmp_path / "run", metrics=chosen, **ARGUMENTS)
    assert not (tmp_path / "run").exists()


def test_measures_that_give_no_numbers_are_one_clear_error(tmp_path):
    assert make_metrics(None) == list(BUILT_IN)
    more = {"metrics": [words], "hyperparameters": SHORT, **ARGUMENTS}
    with pytest.raises(
        ValueError, match="expected words to give a dict of numbers by name, got 'x"
    ):
        train(ID, "ppo", total_timesteps=208, log_dir=tmp_path, **more)


def test_weights_and_biases_gets_a_table_of_dialogues(tmp_path):
    wandb = pytest.importorskip("wandb")
    given = {"eval_freq": 104, "eval_episodes": 2, "samples": 2, "wandb": {"mode": "offline"}}
    given |= {"hyperparameters": SHORT, "log_dir": tmp_path, "total_timesteps": 208}
    train(ID, "ppo", **given, **ARGUMENTS)
    assert wandb.run is None
    identity = (tmp_path / ID_FILE).read_text()
    (record,) = tmp_path.glob(f"wandb/offline-run-*/run-{identity}.wandb")
    assert b"rollout/ep_rew_mean" in record.read_bytes()
    tables = sorted(tmp_path.glob("wandb/offline-run-*/files/media/table/samples_*.table.json"))
    assert len(tables) == 2
    found = [json.loads(path.read_text("utf-8")) for path in tables]
    for table in found:
        assert table["columns"] == ["timesteps", "seed", "return", "success", "transcript"]
    assert sorted(row[0] for table in found for row in table["data"]) == [104, 104, 208, 208]
    for timesteps, seed, earned, _, transcript in found[0]["data"]:
        text = (tmp_path / "samples" / f"{timesteps}.txt").read_text("utf-8")
        assert f"# seed {seed}: return {earned:g}" in text
        assert transcript.rstrip() in text
