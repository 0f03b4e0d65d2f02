"""Feudal DQN: targets against a slow reference, learning, masks, files, other domains."""

import io

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents.acts.dqn import DQN
from agents.acts.feudal.dqn import FeudalDQN
from tests.support.act_mdps import five_states, greedy_return, vec_env
from tests.support.close import assert_close
from tests.support.slot_mdp import slot_vec_env

QUICK = {
    "learning_rate": 3e-3,
    "buffer_size": 600,
    "learning_starts": 50,
    "batch_size": 32,
    "train_freq": 1,
    "tau": 0.05,
    "target_update_interval": 4,
    "exploration_initial_eps": 0.5,
    "exploration_final_eps": 0.02,
    "exploration_fraction": 0.7,
    "policy_kwargs": {"net_arch": [32]},
    "device": "cpu",
}
CR, SFR = "dialgym/SlotFilling-act-v0", "dialgym/SFRestaurants-Env3-act-v0"


def make(env, seed=0, **changes):
    return FeudalDQN("MlpPolicy", env, seed=seed, **{**QUICK, **changes})


@pytest.fixture(scope="module")
def model():
    return make(dialgym.sb3_vec_env(CR, 2, seed=0), learning_starts=20).learn(200)


def test_learns_the_masked_mdp_to_the_optimum():
    model = make(slot_vec_env(five_states(), rows=4)).learn(2000)
    assert greedy_return(model, five_states()) == pytest.approx(five_states().best_return())


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


@pytest.mark.parametrize("deterministic", [True, False])
def test_masks_are_never_violated(model, deterministic):
    rng = np.random.default_rng(0)
    masks = rng.random((300, model.action_space.n)) < np.linspace(0.05, 1, 300)[:, None]
    masks[np.arange(300), rng.integers(model.action_space.n, size=300)] = True
    beliefs = rng.random((300, *model.observation_space.shape)).astype(np.float32)
    model.exploration_rate = 0.5
    acts, _ = model.predict(beliefs, deterministic=deterministic, action_masks=masks)
    assert masks[np.arange(300), acts].all()


def test_random_acts_tell_as_often_as_they_ask(model):
    masks = np.ones((4000, model.action_space.n), bool)
    obs = torch.zeros(4000, *model.observation_space.shape)
    acts = model.policy.explore(obs, masks, rate=1.0)
    assert len(set(acts.tolist())) == model.action_space.n
    share = float((model.q_net.q_net.hierarchy.branches.numpy()[acts] == 0).mean())
    assert share == pytest.approx(0.5, abs=0.05)


def test_a_saved_model_acts_and_learns_on_alike(model):
    again = saved(model)
    obs = model.env.reset()
    assert (
        again.predict(obs, deterministic=True)[0] == model.predict(obs, deterministic=True)[0]
    ).all()
    assert again.structure == model.structure
    again.set_env(dialgym.sb3_vec_env(CR, 2, seed=1))
    again.learn(100)


def saved(model):
    file = io.BytesIO()
    agents.save(model, file)
    file.seek(0)
    return agents.load(file, device="cpu")


# Other domains


def test_it_acts_in_another_domain_by_what_it_learned(model):
    env = dialgym.sb3_vec_env(SFR, 2, seed=0)
    other = model.transferred(env)
    assert other.observation_space == env.observation_space
    assert other.structure.domain != model.structure.domain
    weights = zip(model.policy.parameters(), other.policy.parameters())
    assert all(torch.equal(one, two) for one, two in weights)
    acts, _ = other.predict(
        env.reset(), deterministic=True, action_masks=env.env_method("action_masks")
    )
    assert acts.shape == (2,)
    other.learn(100)
    assert other.replay_buffer.size() > 0
    assert model.observation_space == model.env.observation_space  # which is as it was


def test_training_begins_with_weights_of_another_domain(model, tmp_path):
    model.save(tmp_path / "cr.zip")
    more = {
        "n_envs": 2,
        "progress_bar": False,
        "hyperparameters": {"policy_kwargs": {"net_arch": [32]}},
    }
    other = agents.train(
        SFR,
        "feudal-dqn",
        total_timesteps=4,
        init_from=tmp_path / "cr.zip",
        log_dir=tmp_path / "sfr",
        **more,
    )
    for one, two in zip(model.q_net.parameters(), other.q_net.parameters()):
        assert torch.equal(one, two)
    with pytest.raises(ValueError, match=r"cannot start from .*: expected a feudal policy"):
        model.policy.start_from(DQN("MlpPolicy", model.env).policy)


def test_an_env_that_says_nothing_of_its_acts_is_an_error():
    with pytest.raises(ValueError, match="FeudalDQN: expected an env that says what its beliefs"):
        make(vec_env(five_states()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"uncertainty": "bootstrap"}, "feudal policies: they have no bootstrapped heads"),
        ({"curiosity": {}}, "feudal policies: expected no curiosity, whose models are of"),
    ],
)
def test_what_is_not_for_feudal_policies_is_one_clear_error(settings, message):
    with pytest.raises(ValueError, match=message):
        make(slot_vec_env(five_states()), policy_kwargs=settings)


def test_uncertain_networks_give_a_distribution_of_q():
    model = make(slot_vec_env(five_states()), policy_kwargs={"uncertainty": "noisy"})
    mean, std = model.q_distribution(np.eye(5, dtype=np.float32))
    assert mean.shape == std.shape == (5, 4)
    assert (std > 0).all()
