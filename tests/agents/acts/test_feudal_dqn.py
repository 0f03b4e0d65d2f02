"""Feudal DQN: targets against a slow reference, losses, exploration, weights to begin with."""

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents.acts.dqn import DQN
from agents.acts.feudal.dqn import FeudalDQN
from tests.support.act_mdps import five_states
from tests.support.close import assert_close
from tests.support.slot_mdp import slot_vec_env

QUICK = {"learning_rate": 3e-3, "buffer_size": 600, "learning_starts": 20, "batch_size": 32}
QUICK |= {"train_freq": 1, "tau": 0.05, "target_update_interval": 4, "device": "cpu"}
QUICK |= {"policy_kwargs": {"net_arch": [32]}}
CR, SFR = "dialgym/SlotFilling-act-v0", "dialgym/SFRestaurants-Env3-act-v0"


def make(env, seed=0, **changes):
    return FeudalDQN("MlpPolicy", env, seed=seed, **{**QUICK, **changes})


@pytest.fixture(scope="module")
def model():
    return make(dialgym.sb3_vec_env(CR, 2, seed=0)).learn(200)


@pytest.mark.parametrize("double", [True, False])
def test_targets_are_values_of_the_act_that_the_hierarchy_takes_next(model, double):
    model.double = double
    batch = model.replay_buffer.sample(40)
    targets = model.targets(batch)
    tree, online, target = model.q_net.q_net.hierarchy, model.q_net, model.q_net_target
    with torch.no_grad():
        judge = (online if double else target).parts(batch.next_observations)
        ahead = target.parts(batch.next_observations)
    for i in range(40):
        free = np.flatnonzero(batch.next_masks[i].numpy())
        kinds = {int(tree.branches[act]) for act in free}
        best = max(kinds, key=lambda kind: float(judge.master[i, kind]))
        under = [act for act in free if int(tree.branches[act]) == best]
        act = max(under, key=lambda act: float(judge.acts[i, act]))
        for row, value in enumerate((ahead.master[i, best], ahead.acts[i, act])):
            assert_close(targets[row, i], batch.rewards[i] + batch.discounts[i] * value)
    model.double = True


def test_the_loss_is_that_of_the_master_and_of_one_sub_policy(model):
    batch = model.replay_buffer.sample(1)
    loss, _ = model.loss(batch)
    model.policy.optimizer.zero_grad()
    loss.backward()
    network = model.q_net.q_net
    moved = {
        name: any(p.grad is not None and p.grad.abs().max() > 0 for p in part.parameters())
        for name, part in (("general", network.general), ("slot", network.slot))
    }
    kind = int(network.hierarchy.branches[batch.actions[0]])
    assert moved == {"general": kind == 0, "slot": kind == 1}
    assert any(p.grad.abs().max() > 0 for p in network.master.parameters())


def test_random_acts_tell_as_often_as_they_ask(model):
    masks = np.ones((4000, model.action_space.n), bool)
    obs = torch.zeros(4000, *model.observation_space.shape)
    acts = model.policy.explore(obs, masks, rate=1.0)
    assert len(set(acts.tolist())) == model.action_space.n
    share = float((model.q_net.q_net.hierarchy.branches.numpy()[acts] == 0).mean())
    assert share == pytest.approx(0.5, abs=0.05)


def test_training_begins_with_weights_of_another_domain(model, tmp_path):
    model.save(tmp_path / "cr.zip")
    given = {"n_envs": 2, "progress_bar": False, "log_dir": tmp_path / "sfr"}
    given |= {"init_from": tmp_path / "cr.zip", "total_timesteps": 4}
    given["hyperparameters"] = {"policy_kwargs": {"net_arch": [32]}}
    other = agents.train(SFR, "feudal-dqn", **given)
    for one, two in zip(model.q_net.parameters(), other.q_net.parameters()):
        assert torch.equal(one, two)
    with pytest.raises(ValueError, match=r"cannot start from .*: expected a feudal policy"):
        model.policy.start_from(DQN("MlpPolicy", model.env).policy)


def test_uncertain_networks_give_a_distribution_of_q():
    model = make(slot_vec_env(five_states()), policy_kwargs={"uncertainty": "noisy"})
    mean, std = model.q_distribution(np.eye(5, dtype=np.float32))
    assert mean.shape == std.shape == (5, 4)
    assert (std > 0).all()
