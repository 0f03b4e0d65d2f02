"""Feudal learners: they learn within masks, are saved, and act in other domains."""

import io

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import FeudalACER, FeudalDQN, FeudalGain
from tests.support.act_mdps import five_states, greedy_return, vec_env
from tests.support.by_day import by_day
from tests.support.slot_mdp import slot_vec_env

CR, SFR = "dialgym/SlotFilling-act-v0", "dialgym/SFRestaurants-Env3-act-v0"
QUICK = {"learning_starts": 40, "policy_kwargs": {"net_arch": [32]}, "device": "cpu", "seed": 0}
REPLAY = {**QUICK, "learning_starts": 50, "learning_rate": 3e-3, "batch_size": 32, "tau": 0.05}
REPLAY |= {"train_freq": 1, "buffer_size": 600, "target_update_interval": 4}
REPLAY["exploration_initial_eps"] = 0.5
LEARNERS = {
    FeudalDQN: (2000, {**REPLAY, "exploration_final_eps": 0.02, "exploration_fraction": 0.7}),
    FeudalACER: (700, {**QUICK, "learning_rate": 5e-3, "exploration_initial_eps": 0.2}),
}


@pytest.fixture(scope="module", params=[FeudalDQN, FeudalACER, FeudalGain])
def model(request):
    env = dialgym.sb3_vec_env(CR, 2, seed=0)
    settings = REPLAY if request.param is FeudalDQN else QUICK
    return request.param("MlpPolicy", env, **settings).learn(150)


@pytest.mark.parametrize("learner", by_day(LEARNERS, FeudalACER))
def test_it_learns_the_masked_mdp_to_the_optimum(learner):
    steps, settings = LEARNERS[learner]
    model = learner("MlpPolicy", slot_vec_env(five_states(), rows=4), **settings).learn(steps)
    assert greedy_return(model, five_states()) == pytest.approx(five_states().best_return())


def beliefs_and_masks(model, count=300):
    rng = np.random.default_rng(0)
    masks = rng.random((count, model.action_space.n)) < np.linspace(0.05, 1, count)[:, None]
    masks[np.arange(count), rng.integers(model.action_space.n, size=count)] = True
    return rng.random((count, *model.observation_space.shape)).astype(np.float32), masks


@pytest.mark.parametrize("deterministic", [True, False])
def test_masks_are_never_violated(model, deterministic):
    beliefs, masks = beliefs_and_masks(model)
    if isinstance(model, FeudalDQN):
        model.exploration_rate = 0.5
    acts, _ = model.predict(beliefs, deterministic=deterministic, action_masks=masks)
    assert masks[np.arange(len(masks)), acts].all()


def test_a_saved_model_acts_and_learns_on_alike(model):
    file = io.BytesIO()
    agents.save(model, file)
    file.seek(0)
    again = agents.load(file, device="cpu", env=dialgym.sb3_vec_env(CR, 2, seed=1))
    beliefs, masks = beliefs_and_masks(model)
    chosen = [m.predict(beliefs, deterministic=True, action_masks=masks)[0] for m in (model, again)]
    assert np.array_equal(*chosen)
    assert again.structure == model.structure
    again.learn(50)


def test_it_acts_in_another_domain_by_what_it_learned(model):
    env = dialgym.sb3_vec_env(SFR, 2, seed=0)
    other = model.transferred(env)
    assert other.observation_space == env.observation_space
    assert other.structure.domain != model.structure.domain
    weights = zip(model.policy.parameters(), other.policy.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in weights)
    acts, _ = other.predict(env.reset(), action_masks=env.env_method("action_masks"))
    assert acts.shape == (2,)
    other.learn(60)
    assert other.replay_buffer.size() > 0
    assert model.observation_space == model.env.observation_space  # which is as it was


@pytest.mark.parametrize("learner", [FeudalDQN, FeudalACER, FeudalGain])
def test_an_env_that_says_nothing_of_its_acts_is_an_error(learner):
    message = f"{learner.__name__}: expected an env that says what its beliefs"
    with pytest.raises(ValueError, match=message):
        learner("MlpPolicy", vec_env(five_states()))
