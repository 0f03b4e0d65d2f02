"""A2C, ENAC, ACER and TRACER: learning within masks, behaviour, updates, settings."""

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C as Stock

import agents
from agents import A2C, ACER, ENAC, TRACER
from agents.buffers.dialogues import DialogueMemory
from agents.storage.archive import Archive, write_archive
from tests.support.act_mdps import (
    beliefs_of,
    five_states,
    greedy_return,
    long_chain,
    noisy_bandit,
    vec_env,
)
from tests.support.by_day import by_day
from tests.support.close import assert_close

ALGORITHMS = (A2C, ENAC, ACER, TRACER)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("features", by_day([None, 8], 8))
def test_it_learns_the_masked_mdp_to_the_optimum(algorithm, features):
    """The env fails where an act is chosen that a mask forbids."""
    table = five_states()
    model = algorithm("MlpPolicy", vec_env(table, 4, 0, features), seed=0)
    assert greedy_return(model, table, features) < table.best_return() - 0.05
    model.learn(700)
    assert_close(greedy_return(model, table, features), table.best_return())


@pytest.mark.parametrize("algorithm", by_day(ALGORITHMS, ENAC))
def test_it_learns_through_noise(algorithm):
    table = noisy_bandit()
    model = algorithm("MlpPolicy", vec_env(table, 4), seed=0).learn(800)
    assert greedy_return(model, table) >= 0.75 * table.best_return()


@pytest.mark.parametrize("algorithm", by_day([A2C, ACER, TRACER]))
def test_values_are_those_of_the_policy(algorithm):
    """Of the start, where the learned policy goes the best way; V discounts."""
    table = five_states()
    model = algorithm("MlpPolicy", vec_env(table, 4), seed=0, gamma=0.9, ent_coef=0.001,
                      exploration_initial_eps=0.2, exploration_final_eps=0.0,
                      exploration_fraction=0.5).learn(1500)  # fmt: skip
    starts = torch.as_tensor(beliefs_of(model.env)[:1])
    with torch.no_grad():
        more = (torch.as_tensor(table.masks[:1]),) if algorithm is ACER else ()
        value = model.policy.predict_values(starts, *more)
    assert abs(float(value) - table.q_values(0.9)[0].max()) < 0.1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_behaviour_is_the_policy_with_some_acts_at_random(algorithm):
    table = five_states()
    model = algorithm("MlpPolicy", vec_env(table, 2), seed=0, learning_starts=10**6,
                      exploration_initial_eps=0.3, exploration_final_eps=0.1,
                      exploration_fraction=0.5)  # fmt: skip
    model.learn(200)
    memory: DialogueMemory = model.replay_buffer
    seen, masks = torch.as_tensor(memory.observations[:100, 0]), memory.masks[:100, 0]
    assert np.array_equal(masks, table.masks[seen.argmax(1)])
    logits, _ = model.policy.logits_and_values(seen, torch.as_tensor(masks))
    eps = np.clip(0.3 - 0.2 * np.arange(100) / 50, 0.1, 0.3)[:, None]
    wanted = (1 - eps) * logits.softmax(-1).detach().numpy() + eps * masks / masks.sum(1)[:, None]
    assert_close(memory.probs[:100, 0], wanted)


def test_dialogues_wait_for_an_update():
    model = A2C("MlpPolicy", vec_env(five_states(), 3), seed=0, dialogues_per_update=7)
    ended = []
    model.update = lambda batch: ended.append(int(batch.last.sum())) or {}
    model.learn(500)
    assert all(7 <= count <= 9 for count in ended)
    assert model._episode_num - sum(ended) == model.replay_buffer.n_unseen < 7


def test_rewards_are_scaled_for_the_update():
    model = A2C("MlpPolicy", vec_env(five_states()), seed=0, reward_scale=0.5)
    seen = []
    model.update = lambda batch: seen.append(batch.rewards) or {}
    model.learn(200)
    found = np.concatenate(seen)
    assert_close(found, 0.5 * model.replay_buffer.rewards[: len(found), 0])


def test_the_average_begins_as_the_policy_that_learning_begins_with():
    env = vec_env(five_states(), 2)
    model, other = (ACER("MlpPolicy", env, seed=seed, average_tau=0.0) for seed in (0, 1))
    model.policy.load_state_dict(other.policy.state_dict())
    model.learn(300)
    pairs = zip(model.trust_region.average.parameters(), other.policy.parameters())
    assert all(torch.equal(a, b) for a, b in pairs)


def test_predict_takes_rows_and_single_beliefs():
    model = ACER("MlpPolicy", vec_env(long_chain(), 2), seed=0)
    rows = beliefs_of(model.env)
    assert model.predict(rows)[0].shape == (10,)
    assert model.predict(rows[0])[0].shape == ()
    only = np.eye(2, dtype=bool)[[0, 1] * 5]
    assert model.predict(rows, action_masks=only)[0].tolist() == [0, 1] * 5


def test_files_of_stable_baselines_own_a2c_stay_what_they_are(tmp_path):
    file = tmp_path / "model.zip"
    agents.save(Stock("MlpPolicy", vec_env(five_states()), seed=0), file)
    assert type(agents.load(file)) is Stock
    # As it was written when the row `a2c` was that class.
    archive = Archive(file, "model")
    names = "algorithm", "settings", "policy", "optimizer"
    sections = {name: archive.read(name) for name in names}
    sections["algorithm"]["name"] = "a2c"
    write_archive(file, "model", sections)
    assert type(agents.load(file)) is Stock
