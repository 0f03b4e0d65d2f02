"""Acts in datasets: collected, stored, given back as arrays, exchanged."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset, concatenate, from_minari
from dialgym.rollouts import episode_seed

pytest.importorskip("pyarrow")

ENV = "dialgym/CamRestaurants-Env1-act-v0"


class Masked:
    """A policy of numbers: the first act that the mask allows, counted down from the last."""

    def predict(self, observation: np.ndarray, action_masks: Any = None, **_: Any) -> Any:
        return np.array([np.flatnonzero(mask)[-1] for mask in action_masks]), None


class Any_:
    """Chooses among all acts by its generator, masks or not."""

    def act(self, task: Any, state: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(len(task.acts[task.speaker(state)].names)))


@pytest.fixture(scope="module")
def games() -> Dataset:
    return dialgym.collect(ENV, "handcrafted", 30, seed=2)


def test_what_is_stored_is_what_the_env_shows():
    """With numbers for a policy the env draws the words, so that its actions replay a dialogue."""
    data = dialgym.collect(ENV, Masked(), 12, seed=3, num_envs=5)
    env = gym.make(ENV)
    for episode, row in enumerate(data):
        assert row["seed"] == episode_seed(3, episode)
        observation, _ = env.reset(seed=row["seed"])
        said = [turn for turn in row["turns"] if turn["said"]]
        assert len(row["actions"]) == len(said) == len(row["observations"]) - 1
        for k, turn in enumerate(said):
            np.testing.assert_array_equal(observation, np.float32(row["observations"][k]))
            assert env.unwrapped.action_masks().tolist() == row["action_masks"][k]
            observation, reward, terminated, truncated, info = env.step(row["actions"][k][0])
            assert (info["utterance"], reward) == (turn["text"], turn["reward"])
        np.testing.assert_array_equal(observation, np.float32(row["observations"][-1]))
        assert (terminated, truncated) == (row["terminated"], row["truncated"])
        assert info["is_success"] == row["success"]


@pytest.mark.parametrize("learner", ["system", "user"])
def test_either_party_may_choose_acts(learner: str):
    name = {"system": "handcrafted", "user": "agenda"}[learner]
    data = dialgym.collect(ENV, name, 8, env_kwargs={"learner": learner})
    task = gym.make(ENV, learner=learner).unwrapped.task
    acts = task.acts[learner]
    found = data.acts()
    assert found.decisions.observations.shape == (len(found), acts.size)
    assert found.decisions.action_masks.shape == (len(found), len(acts.names))
    assert found.decisions.actions.max() < len(acts.names)
    assert data["learner"].tolist() == [learner] * 8


def test_the_words_of_a_scripted_policy_replay_the_dialogue(games: Dataset):
    env = gym.make(ENV.replace("-act", "-utterance"))
    row = games[3]
    env.reset(seed=row["seed"])
    for turn in row["turns"]:
        if turn["said"]:
            _, reward, *_ = env.step(turn["text"])
            assert reward == turn["reward"]


def test_arrays_are_the_decisions_in_order(games: Dataset):
    data = games.acts(gamma=0.9)
    rows = games.table.to_pylist()
    assert data.offsets[-1] == len(data) == games.lengths.sum()
    for i in (0, 7, 29):
        part, row = data.dialogue(i), rows[i]
        np.testing.assert_array_equal(part.observations, np.float32(row["observations"][:-1]))
        np.testing.assert_array_equal(part.next_observations, np.float32(row["observations"][1:]))
        np.testing.assert_array_equal(part.action_masks, row["action_masks"][:-1])
        np.testing.assert_array_equal(part.next_action_masks, row["action_masks"][1:])
        assert part.actions.tolist() == [chosen[0] for chosen in row["actions"]]
        assert part.dones.tolist() == [False] * (len(part.rewards) - 1) + [True]
        rewards = [turn["reward"] for turn in row["turns"] if turn["said"]]
        expected = [sum(r * 0.9**j for j, r in enumerate(rewards[k:])) for k in range(len(rewards))]
        np.testing.assert_allclose(part.returns_to_go, expected, rtol=1e-6)
    assert (data.decisions.terminated | data.decisions.truncated).sum() == 30


def test_batches_of_decisions(games: Dataset):
    data = games.acts()
    batches = data.batches(16, np.random.default_rng(0))
    first, second = next(batches), next(batches)
    assert first.observations.shape[0] == first.rewards.shape[0] == 16
    assert not np.array_equal(first.observations, second.observations)
    with pytest.raises(ValueError, match="size must be a whole number from 1 to the"):
        next(data.batches(len(data) + 1, np.random.default_rng(0)))


@pytest.mark.slow
def test_they_are_the_same_in_any_number_of_workers_and_files(tmp_path: Path):
    kwargs: dict[str, Any] = {"seed": 1, "shard_size": 4, "num_envs": 4}
    for policy in ("handcrafted", "random"):
        alone = dialgym.collect(ENV, policy, 10, **kwargs)
        path = tmp_path / policy
        written = dialgym.collect(ENV, policy, 10, workers=2, path=path, **kwargs)
        assert alone.table.equals(written.table)
        assert alone.table.equals(dialgym.load_dataset(path).table)


def test_a_policy_of_acts_alone_is_scored_and_collected():
    result = dialgym.evaluate(Any_(), ENV, 20, (0,))
    data = dialgym.collect(ENV, Any_(), 20)
    np.testing.assert_array_equal(data.returns, result.overall.returns[0])
    with pytest.raises(ValueError, match=r"with act\(\) plays act views; got .*token view"):
        dialgym.evaluate(Any_(), ENV.replace("-act", ""), 2)


def test_numbers_play_acts_of_either_party():
    for learner in ("system", "user"):
        result = dialgym.evaluate(Masked(), ENV, 10, (0,), {"learner": learner}, num_envs=4)
        alone = dialgym.evaluate(Masked(), ENV, 10, (0,), {"learner": learner}, num_envs=1)
        np.testing.assert_array_equal(result.overall.returns, alone.overall.returns)


def test_what_has_no_acts_says_so(games: Dataset):
    words = dialgym.collect(ENV.replace("-act", ""), "handcrafted", 3)
    with pytest.raises(ValueError, match="got dialogues without acts"):
        words.acts()
    other = dialgym.collect(ENV, "agenda", 2, env_kwargs={"learner": "user"})
    with pytest.raises(ValueError, match="got acts of 2 kinds"):
        concatenate([games, other]).acts()


def test_a_description_counts_them(games: Dataset):
    assert "acts        chosen in 30 dialogues" in str(games.describe())
    assert "acts" not in str(dialgym.collect("Wordle-20-v0", "random", 2).describe())


def test_minari_there_and_back(games: Dataset, tmp_path: Path, monkeypatch: Any):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    stored = games.to_minari("restaurants/acts-v0")
    assert stored.env_spec.id == ENV
    episode = minari.load_dataset("restaurants/acts-v0")[0]
    assert episode.observations.shape[0] == len(episode.actions) + 1
    again = from_minari("restaurants/acts-v0")
    for one, other in zip(games.acts().decisions, again.acts().decisions):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.returns, games.returns)
    assert again["acts"].tolist() == games["acts"].tolist()
    assert json.loads(again["settings"][0]) == json.loads(games["settings"][0])
