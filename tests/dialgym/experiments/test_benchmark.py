"""The benchmark: statistics against closed forms, fair episodes, results that come back."""

import sys

import gymnasium as gym
import numpy as np
import pytest

import agents
import dialgym
from dialgym.experiments import episode_seed
from dialgym.registry import entry_of
from dialgym.rollouts.policies import checkpoint_reader
from tests.support.players import SMALL, Counting, Fixed, FixedTokens, Narrow


def test_the_same_seeds_give_the_same_episodes():
    first, second = (dialgym.evaluate("random-mixture", SMALL, 20) for _ in range(2))
    assert (first[SMALL].returns == second[SMALL].returns).all()
    other = dialgym.evaluate("random-mixture", SMALL, 20, seeds=(3, 4, 5))
    assert (first[SMALL].returns != other[SMALL].returns).any()


def test_an_episode_does_not_depend_on_those_before_it():
    many = dialgym.evaluate("random", SMALL, 30, seeds=(0, 1))[SMALL]
    few = dialgym.evaluate("random", SMALL, 10, seeds=(1,))[SMALL]
    assert (many.returns[1, :10] == few.returns[0]).all()


VISUAL = "dialgym/VisualDialogue-100-v0"


class AsksTheTime:
    """Asks whether it is night: in words, one after another; as a batch; and in tokens."""

    def reply(self, task, state, rng):
        return "is it night"


class AllAskTheTime(AsksTheTime):
    def reply_many(self, task, states, rngs):
        return ["is it night"] * len(states)


class AsksTheTimeInTokens:
    def __init__(self):
        env = gym.make(VISUAL, tokenizer="word")
        tokenizer = env.observation_space.tokenizer
        self.ids, self.step = [*tokenizer.encode("is it night"), 1], 0

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        step = 0 if state is None else state
        return np.full(len(observation), self.ids[step % len(self.ids)]), step + 1


@pytest.mark.parametrize("policy", [AllAskTheTime, AsksTheTimeInTokens])
def test_what_a_task_measures_is_reported_whoever_plays(policy):
    one_by_one = dialgym.evaluate(AsksTheTime(), VISUAL, 12, (0, 1))[VISUAL]
    kwargs = {"tokenizer": "word"} if policy is AsksTheTimeInTokens else {}
    found = dialgym.evaluate(policy(), VISUAL, 12, (0, 1), kwargs, num_envs=24)[VISUAL]
    assert set(found.metrics) == {"percentile", "yes/no answers"}
    for name, values in found.metrics.items():
        assert values.shape == (2, 12)
        assert np.allclose(values, one_by_one.metrics[name]), name
    assert 0 < found.metrics["yes/no answers"].mean() < 1
    env = gym.make("dialgym/VisualDialogue-100-utterance-v0")
    env.reset(seed=episode_seed(1, 3))
    over, info = False, {}
    while not over:
        _, _, terminated, truncated, info = env.step("is it night")
        over = terminated or truncated
    assert info["metrics"] == {name: v[1, 3] for name, v in found.metrics.items()}


def test_what_a_task_measures_nothing_of_has_no_metrics():
    assert dialgym.evaluate(Fixed(), SMALL, 2).by_id[SMALL].metrics == {}


def test_a_predictor_gets_states_starts_and_masks():
    policy = Counting()
    dialgym.evaluate(policy, SMALL, 3, seeds=(0,), num_envs=3)
    assert policy.starts[0].all()
    assert policy.masks[0].shape == (3, 32)


def test_all_ids_weigh_the_same_and_are_listed_once():
    result = dialgym.evaluate("random", ["Wordle-20-v0", "Wordle-200-v0", SMALL], 30)
    assert list(result.by_id) == [SMALL, "dialgym/Wordle-200-v0"]
    parts = [result["Wordle-20-v0"], result["Wordle-200-v0"]]
    assert result.mean_return == pytest.approx(np.mean([p.mean_return for p in parts]))
    assert result.overall.returns.shape == (6, 30)
    low, high = result.interval
    assert low < result.mean_return < high
    assert result.success == pytest.approx(np.mean([p.success for p in parts]))


def test_score_is_0_for_random_and_100_for_the_expert():
    scores = entry_of(SMALL).row.scores
    result = dialgym.evaluate("optimal", SMALL, 50)
    scaled = 100 * (result.mean_return - scores["random"]) / (scores["expert"] - scores["random"])
    assert result.score == pytest.approx(scaled)
    assert result.score == pytest.approx(100, abs=5)
    assert dialgym.evaluate("random", SMALL, 200).score == pytest.approx(0, abs=8)


def test_other_settings_have_no_score():
    assert dialgym.evaluate("random", SMALL, 2, env_kwargs={"turns": 3}).score is None
    assert dialgym.evaluate("random", SMALL, 2, env_kwargs={"tokenizer": "word"}).score is not None


def test_learner_may_be_the_user():
    result = dialgym.evaluate("host", SMALL, 5, env_kwargs={"learner": "user"})
    assert (result[SMALL].lengths == 1).all()
    assert (result[SMALL].returns >= 0).all()


def test_progress_is_reported():
    counts = []
    dialgym.evaluate(FixedTokens(), SMALL, 5, seeds=(0, 1), report=counts.append)
    dialgym.evaluate("random", SMALL, 5, seeds=(0, 1), report=counts.append)
    assert sum(counts) == 20


@pytest.mark.parametrize(
    ("policy", "ids", "kwargs", "message"),
    [
        ("rundom", SMALL, {}, "unknown policy for the system 'rundom'. Did you mean 'random'?"),
        ("runs/nothing", SMALL, {}, r"a folder with model.zip, .* at 'runs/nothing'; there"),
        (3, SMALL, {}, r"policy: expected a registered name, a path .* got 3"),
        ("random", "Wordel-v0", {}, "unknown environment id 'Wordel-v0'. Did you mean"),
        ("random", [], {}, "ids is empty"),
        ("random", SMALL, {"episodes": 0}, "episodes of evaluate must be a whole number from 1"),
        ("random", SMALL, {"seeds": (1, 1)}, r"seeds must be distinct .* got \(1, 1\)"),
        ("random", SMALL, {"seeds": (-1,)}, "seeds must be distinct whole numbers from 0"),
        (
            "random",
            SMALL,
            {"env_kwargs": {"turn": 3}},
            "unexpected .* 'turn'.*mean 'turns'",
        ),
        ("random", SMALL, {"env_kwargs": {"learner": "me"}}, "learner of Wordle must be one of"),
        (Narrow(), SMALL, {}, r"Narrow sees \(12,\) .*Wordle-20-v0 shows \(108,\)"),
        (FixedTokens(), "Wordle-20-utterance-v0", {}, "token and act views here; got 'dialgym/W"),
    ],
)
def test_errors_say_what_is_wrong(policy, ids, kwargs, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        dialgym.evaluate(policy, ids, **kwargs)


def test_checkpoints_are_loaded_by_their_reader(tmp_path, monkeypatch):
    loaded = []

    def read(path, trust):
        loaded.append(path)
        assert not trust
        return FixedTokens()

    monkeypatch.setattr("dialgym.rollouts.policies.checkpoint_reader", lambda file: read)
    run = tmp_path / "ppo-run"
    run.mkdir()
    (run / "model.zip").write_bytes(b"")
    for path in (run, str(run), run / "model.zip", run / "model"):
        result = dialgym.evaluate(path, ["Wordle-20-v0", "Wordle-200-v0"], 2)
    assert loaded == [run / "model.zip"] * 4
    assert dialgym.evaluate(run, SMALL, 2).policy == "ppo-run"
    assert result.mean_return < 0


def test_what_reads_checkpoints_is_an_entry_point(tmp_path, monkeypatch):
    file = tmp_path / "model.zip"
    assert checkpoint_reader(file) is agents.load
    monkeypatch.setitem(sys.modules, "agents.storage.models", None)
    with pytest.raises(ImportError, match=r"read by agents\.storage\.models:load, .*pip install"):
        checkpoint_reader(file)
    monkeypatch.setattr("dialgym.rollouts.policies.READERS", "dialgym.nothing")
    with pytest.raises(
        ImportError, match=r"expected an entry point of the group 'dialgym.nothing'"
    ):
        checkpoint_reader(file)


def test_a_spec_is_scored_and_stored_with_its_settings(tmp_path):
    spec = gym.make("dialgym/Wordle-20-v0", turns=2, action_masks=True).spec
    result = dialgym.evaluate("random", spec, episodes=20, seeds=(0,))
    assert result.env_kwargs == {"turns": 2, "action_masks": True}
    assert result["Wordle-20-v0"].returns.min() == -2
    assert result["Wordle-20-v0"].score is None
    words = gym.make("dialgym/CamRestaurants-Env1-v0", language="english").spec
    assert dialgym.evaluate("handcrafted", words, 1).env_kwargs == {"language": "english"}
    with pytest.raises(ValueError, match="one spec with settings of its own at a time"):
        dialgym.evaluate("random", [spec, "Wordle-200-v0"], 1)
    stored = dialgym.collect(spec, "random", 3, path=tmp_path)
    assert stored.environment()[1] == {"turns": 2, "action_masks": True}
