"""Deep Q-learning within masks: targets and losses of slow versions, learning, going on."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

from agents import DQN
from tests.support.act_mdps import (
    Table,
    TableEnv,
    five_states,
    greedy_return,
    long_chain,
    noisy_bandit,
    vec_env,
)
from tests.support.by_day import by_day
from tests.support.close import assert_close

SMALL = {"learning_rate": 3e-3, "learning_starts": 50, "batch_size": 32, "train_freq": 1}
SMALL |= {"target_update_interval": 100, "buffer_size": 5000, "seed": 0, "device": "cpu"}
GREEDY = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0}
VARIANTS = {
    "single": {"double": False},
    "double": {},
    "dueling": {"policy_kwargs": {"dueling": True}},
    "n-step": {"n_steps": 3},
    "prioritised": {"priority_alpha": 0.6},
    "noisy": {"policy_kwargs": {"uncertainty": "noisy", "dueling": True}, **GREEDY},
    "dropout": {"policy_kwargs": {"uncertainty": "dropout"}, **GREEDY},
    "concrete": {"policy_kwargs": {"uncertainty": "concrete"}, **GREEDY},
    "bootstrap": {"policy_kwargs": {"uncertainty": "bootstrap"}, **GREEDY},
    "curious": {"policy_kwargs": {"curiosity": {"scale": 0.01}}},
}


def made(table=None, rows=4, **settings):
    given = {**SMALL, "exploration_fraction": 0.5, **settings}
    given["policy_kwargs"] = {"net_arch": [32], **settings.get("policy_kwargs", {})}
    model = DQN("MlpPolicy", vec_env(table or five_states(), rows), **given)
    model.set_logger(Logger(None, []))
    return model


def played(**settings):
    """A model with a memory, and a batch of it."""
    model = made(**settings).learn(120)
    batch = model.replay_buffer.sample(16)
    model.policy.set_training_mode(True)
    return model, batch


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("double", [False, True])
def test_targets_are_those_of_a_slow_version(double, heads):
    many = {"uncertainty": "bootstrap", "uncertainty_kwargs": {"n_heads": heads}}
    model, batch = played(double=double, n_steps=2, gamma=0.9, policy_kwargs=many)
    with torch.no_grad():
        for weights in model.q_net_target.parameters():
            weights += 0.1 * torch.randn_like(weights)
        found = model.targets(batch)
        online = model.q_net.q_values(batch.next_observations).numpy()
        target = model.q_net_target.q_values(batch.next_observations).numpy()
    for head in range(heads):
        for i in range(16):
            acts = np.flatnonzero(batch.next_masks[i])
            judge = (online if double else target)[head, i]
            best = max(acts, key=lambda act: judge[act])
            value = batch.rewards[i] + batch.discounts[i] * target[head, i, best]
            assert_close(found[head, i], value)
    assert 0 < (batch.discounts == 0).sum() < 16


def test_the_loss_is_that_of_a_slow_version():
    model, batch = played(policy_kwargs={"uncertainty": "bootstrap"}, priority_alpha=0.7)
    batch = batch._replace(rewards=batch.rewards * 5)
    loss, errors = model.loss(batch)
    with torch.no_grad():
        targets = model.targets(batch).double().numpy()
        q = model.q_net.q_values(batch.observations).double().numpy()
    total, sizes = 0.0, np.zeros(16)
    for head in range(10):
        for i in range(16):
            error = abs(targets[head, i] - q[head, i, batch.actions[i]])
            huber = error**2 / 2 if error < 1 else error - 0.5
            total += huber * batch.heads[i, head].item() * batch.weights[i].item() / 160
            sizes[i] += error / 10
    assert_close(loss, total)
    assert_close(errors, sizes)
    assert 0 < batch.heads.mean() < 1
    assert len(batch.weights.unique()) > 1


@pytest.mark.parametrize("variant", by_day(VARIANTS, "n-step", "noisy"))
def test_it_learns_the_masked_states_to_the_optimum(variant):
    model = made(**VARIANTS[variant]).learn(1000)
    assert greedy_return(model, five_states()) == pytest.approx(0.7)


@pytest.mark.parametrize("variant", by_day(["double", "noisy", "bootstrap"], "bootstrap"))
def test_it_finds_the_better_arm_through_noise(variant):
    model = made(noisy_bandit(), **VARIANTS[variant]).learn(800)
    assert greedy_return(model, noisy_bandit()) == pytest.approx(0.85)


def test_q_values_are_the_right_ones():
    model = made(exploration_initial_eps=1.0, exploration_final_eps=1.0).learn(1200)
    table = five_states()
    q = model.policy.q_net(torch.as_tensor(TableEnv(table).beliefs)).detach().numpy()
    right = table.q_values()
    assert np.abs(q - right)[table.masks].max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["noisy", "bootstrap"])
def test_what_explores_by_uncertainty_goes_down_a_long_chain(variant):
    model = made(long_chain(12), **VARIANTS[variant]).learn(16_000)
    assert greedy_return(model, long_chain(12)) == pytest.approx(1.0)


def test_a_truncated_episode_is_bootstrapped_within_the_mask_before():
    """Going to and fro never ends; the env then shows another episode, and its mask."""
    stay = np.array([[1, 0], [0, 1]])
    masks = np.array([[True, False], [False, True]])
    table = Table(stay, np.zeros((2, 2)), masks, limit=3)
    table = Table(np.array([[1, 1], [0, 0]]), table.rewards, masks, limit=3)
    model = made(table, rows=1).learn(9)
    memory = model.replay_buffer
    assert memory.timeouts[:9, 0].tolist() == [0, 0, 1] * 3
    batch = memory.at(np.arange(9))
    assert_close(batch.discounts, np.full(9, 0.99))
    first, second = masks.tolist()
    assert batch.next_masks.tolist() == [second, first, first] * 3


@pytest.mark.parametrize("goes_on", [False, True])
def test_returns_of_several_steps_end_where_learn_begins_other_dialogues(goes_on):
    model = made(long_chain(), rows=2, n_steps=3, gamma=0.9, learning_starts=100)
    model.learn(10)
    model.learn(10, reset_num_timesteps=not goes_on)
    memory = model.replay_buffer
    assert memory.pos == 10
    batch = memory.at(np.arange(20))
    for place in range(20):
        step, row = divmod(place, 2)
        total, discount = 0.0, 1.0
        for ahead in range(step, min(step + 3, 10 if goes_on or step > 4 else 5)):
            total, discount = total + discount * memory.rewards[ahead, row], discount * 0.9
            ended = bool(memory.dones[ahead, row] and not memory.timeouts[ahead, row])
            if ended:
                break
        assert_close(batch.rewards[place], total)
        assert_close(batch.discounts[place], 0.0 if ended else discount)
        assert np.array_equal(batch.next_observations[place], memory.next_observations[ahead, row])
        assert np.array_equal(batch.next_masks[place], memory.next_masks[ahead, row])
    going_on = memory.dones[3] == 0
    assert going_on.any()  # or there is nothing to break off


def test_a_dialogue_is_held_by_one_head():
    model = made(rows=2, policy_kwargs={"uncertainty": "bootstrap"}, **GREEDY)
    seen, memory, explore = [], model.replay_buffer, model.policy.explore

    def noted(obs, masks, rate, heads):
        seen.append((heads, memory.dones[memory.pos - 1] > 0))
        return explore(obs, masks, rate, heads)

    model.policy.explore = noted
    model.learn(400)
    pairs = [(a, b, ended) for (a, _), (b, ended) in pairwise(seen)]
    assert all((before == now)[~ended].all() for before, now, ended in pairs)
    assert any(ended.any() for _, _, ended in pairs)
    assert len(np.unique([heads for heads, _ in seen])) > 3


def test_surprises_are_rewarded_and_what_is_learned_no_longer_surprises():
    model, batch = played(policy_kwargs={"curiosity": {"scale": 2.0}})
    seen = batch.observations, batch.actions, batch.next_observations
    module = model.policy.curiosity
    bonus, loss = module(*seen)
    here, there = module.encoder(seen[0]), module.encoder(seen[2])
    acts = torch.eye(4)[seen[1]]
    foreseen = module.forward_model(torch.cat([here, acts], 1))
    distance = ((foreseen - there) ** 2).sum(1) / 2
    inverse = module.inverse(torch.cat([here, there], 1)).log_softmax(1)
    assert_close(bonus, 2.0 * distance)
    assert_close(loss, 0.2 * distance.mean() - 0.8 * (acts * inverse).sum(1).mean())
    model.learn(800)
    assert model.policy.curiosity(*seen)[1] < 0.5 * loss
