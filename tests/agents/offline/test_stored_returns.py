"""Values in standard deviations of the data's returns, and values over a clone that stays."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import CQL, ILQL
from agents.buffers.stored_acts import StoredActs
from agents.buffers.stored_returns import return_deviation, with_reward_scale
from tests.support.by_day import by_day
from tests.support.word_games import assert_two_parts_are_one_run, learner

ACTS = "dialgym/SFRestaurants-Env1-act-v0"


@pytest.fixture(scope="module")
def acts():
    return dialgym.collect(ACTS, "handcrafted", 12, seed=0)


def test_the_unit_is_the_deviation_of_the_dialogues_returns(games, acts):
    assert return_deviation(games.tokens()) == pytest.approx(games.returns.std(), rel=1e-6)
    stored = StoredActs(acts.acts(gamma=0.9))
    assert return_deviation(stored) == pytest.approx(acts.returns.std(), rel=1e-6)
    scaled = with_reward_scale(stored, 0.5).data.decisions
    np.testing.assert_allclose(scaled.rewards, stored.data.decisions.rewards / 2)
    np.testing.assert_allclose(scaled.returns_to_go, stored.data.decisions.returns_to_go / 2)


def test_equal_returns_are_left_as_they_are(games):
    data = games.tokens()
    assert return_deviation(replace(data, reward=0 * data.reward)) == 1.0


@pytest.mark.parametrize("factor", by_day([0.03, 40.0], 40.0))
def test_the_scale_of_rewards_changes_nothing(games, factor):
    data = games.tokens()
    other = data.with_token_rewards(reward_scale=factor)
    first, second = (learner(ILQL, one, normalize_rewards=True).learn(3) for one in (data, other))
    assert second.reward_unit == pytest.approx(factor * first.reward_unit, rel=1e-5)
    for a, b in zip(first.policy.parameters(), second.policy.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_the_scale_of_rewards_changes_nothing_in_acts(acts):
    def made(data):
        env = dialgym.sb3_vec_env(ACTS, 2, seed=0)
        kwargs = {"net_arch": [16]}
        model = CQL("MlpPolicy", env, data, normalize_rewards=True, policy_kwargs=kwargs, seed=0)
        return model.learn(3)

    data = acts.acts(gamma=1.0)
    stored = StoredActs(data)
    first, second = made(data), made(with_reward_scale(stored, 20.0).data)
    for a, b in zip(first.policy.parameters(), second.policy.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_a_loaded_learner_keeps_the_unit_that_it_began_with(games, tmp_path):
    def make():
        return learner(ILQL, games, normalize_rewards=True)

    half, _ = assert_two_parts_are_one_run(make, games, tmp_path)
    dear = games.tokens().with_token_rewards(reward_scale=100.0)
    env = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2)
    other = ILQL.load(tmp_path / "half", env, dataset=dear)
    assert other.reward_unit == half.reward_unit
    np.testing.assert_allclose(other.data.reward, 100 * half.data.reward, rtol=1e-5)


def test_blocks_of_a_stream_are_counted_in_the_unit_of_the_first(games):
    stream = agents.DialogueStream("dialgym/Wordle-20-v0", "random", episodes=32, seed=1)
    model = learner(ILQL, stream, normalize_rewards=True, batch_size=16)
    plain = learner(ILQL, stream, batch_size=16)
    for number in (1, 0):
        expected = plain.data.block(number).reward / model.reward_unit
        np.testing.assert_allclose(model.data.block(number).reward, expected, rtol=1e-5)


def test_a_clone_stays_beside_the_values_that_are_read_off_it(games):
    settings = {"policy_weight": 0.0, "losses": {"detach": ["q", "v"]}, "cql_weight": 0.3}
    model = learner(ILQL, games, **settings)
    before = {name: weight.clone() for name, weight in model.policy.named_parameters()}
    model.learn(4)
    moved = {n for n, weight in model.policy.named_parameters() if not weight.equal(before[n])}
    assert {name.split(".")[0] for name in moved} == {"q_heads", "target_q_heads", "value_head"}
