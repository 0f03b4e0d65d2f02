"""GP-SARSA on tables with known optima and on slot filling; files; other domains."""

import io

import gymnasium as gym
import numpy as np
import pytest

import agents
import dialgym
from agents.acts.gp.act_kernels import ActKernel
from agents.acts.gp.open_dialogues import BootstrapValue, OpenDialogues
from agents.acts.gp.sarsa import GPSarsa
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

SMALL = {"gamma": 0.99, "sigma": 0.3, "nu": 1e-6}


def learned(table, steps, rows=2, features=None, seed=0, **more):
    env = vec_env(table, rows, seed, features)
    model = GPSarsa("GPPolicy", env, seed=seed, **{**SMALL, **more})
    return model.learn(steps), env


@pytest.mark.parametrize("features", [None, 12])
@pytest.mark.parametrize("rows", [1, 3])
def test_it_finds_the_best_way_through_five_states(features, rows):
    model, _ = learned(five_states(), 600, rows, features)
    assert greedy_return(model, five_states(), features) == pytest.approx(0.7)


@pytest.mark.parametrize(
    "more",
    [
        {"kernel": "rbf"},
        {"kernel": "polynomial", "kernel_kwargs": {"degree": 3}},
        {"act_kernel": "kind"},
        {"act_kernel": "hdc"},
        {"budget": 4},
        pytest.param({"kernel": "rbf", "scales_after": 100}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_so_it_does_with_other_kernels_and_bounds(more):
    model, _ = learned(five_states(), 600, **more)
    assert greedy_return(model, five_states()) == pytest.approx(0.7)


def test_it_finds_the_best_arm_and_knows_how_well_it_knows_it():
    table = noisy_bandit()
    model, env = learned(table, 800, sigma=1.0)
    assert greedy_return(model, table) == pytest.approx(0.85)
    mean, deviation = model.q_distribution(beliefs_of(env))
    best = np.where(table.masks, table.rewards, -9).argmax(1)
    rows = np.arange(2)
    assert (np.abs(mean - table.rewards)[rows, best] < 4 * deviation[rows, best]).all()
    assert (deviation[rows, best] < deviation[table.masks].max()).all()
    assert_close(deviation[~table.masks], np.ones(2))  # the prior's: forbidden, so never seen


def test_draws_explore_a_chain_that_random_acts_pass_in_1_of_64_episodes():
    model, _ = learned(long_chain(6), 1000)
    assert greedy_return(model, long_chain(6)) == pytest.approx(1.0)


def test_a_dialogue_cut_off_is_worth_what_is_believed_to_follow():
    dialogues = OpenDialogues(1, gamma=0.5)
    for reward in (1.0, 2.0):
        dialogues.add(np.zeros((1, 3)), np.array([1]), np.array([[reward]]))
    found = dialogues.end(0, BootstrapValue(np.array([8.0]), 4.0))
    assert_close(found.returns[:, 0], [1 + 0.5 * (2 + 0.5 * 8), 2 + 0.5 * 8])
    assert_close(found.noise, [1 + 4 / 16, 1 + 4 / 4])
    dialogues.add(np.zeros((1, 3)), np.array([1]), np.array([[3.0]]))
    assert_close(dialogues.end(0).returns, [[3.0]])


@pytest.mark.parametrize("steps", by_day([500, 501, 502], 501))
def test_a_saved_model_is_the_same_and_goes_on_the_same(steps):
    table = five_states()
    model, env = learned(table, steps, kernel="rbf")
    file = io.BytesIO()
    agents.save(model, file)
    state = [(one.unwrapped.state, one.unwrapped.steps) for one in env.envs]
    generators = [one.unwrapped.np_random.bit_generator.state for one in env.envs]
    model.learn(500, reset_num_timesteps=False)
    again = vec_env(table, 2)
    again.reset()
    for one, (place, count), drawn in zip(again.envs, state, generators):
        one.unwrapped.state, one.unwrapped.steps = place, count
        one.unwrapped.np_random.bit_generator.state = drawn
        one.needs_reset = False
    file.seek(0)
    loaded = GPSarsa.load(file, again, force_reset=False)
    loaded.learn(500, reset_num_timesteps=False)
    for ours, theirs in zip(model.q_distribution(np.eye(5)), loaded.q_distribution(np.eye(5))):
        assert np.array_equal(ours, theirs)


def test_it_starts_from_what_another_policy_believes():
    table = five_states()
    expert, env = learned(table, 600)
    model = GPSarsa("GPPolicy", vec_env(table), prior=expert, seed=0, **SMALL)
    mean, deviation = model.q_distribution(beliefs_of(env))
    assert_close(mean, expert.q_distribution(beliefs_of(env))[0])
    assert_close(deviation, np.ones((5, 4)))
    assert greedy_return(model, table) == pytest.approx(0.7)
    file = io.BytesIO()
    model.learn(200).save(file)
    file.seek(0)
    assert greedy_return(agents.load(file), table) == pytest.approx(0.7)
    fresh = GPSarsa("GPPolicy", vec_env(table), **SMALL)
    agents.start_from(fresh.policy, expert)
    assert greedy_return(fresh, table) == pytest.approx(0.7)
    with pytest.raises(ValueError, match="expected a GPPolicy"):
        agents.start_from(fresh.policy, agents.A2C("MlpPolicy", vec_env(table)))
    with pytest.raises(ValueError, match="prior needs q_distribution, the same spaces"):
        GPSarsa("GPPolicy", vec_env(noisy_bandit()), prior=expert)


class TwoParts(gym.Wrapper):
    """Act 0 gives one part of a reward, act 1 the other."""

    def step(self, action):
        seen, reward, *rest, _ = self.env.step(action)
        parts = {"left": float(action == 0), "right": float(action == 1)}
        return seen, reward, *rest, {"reward_components": parts}


def test_objectives_are_weighed_after_they_are_learned():
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = DummyVecEnv([lambda: TwoParts(vec_env(noisy_bandit()).envs[0])])
    model = GPSarsa("GPPolicy", env, objectives={"left": 1.0, "right": 1.0}, seed=0, **SMALL)
    model.learn(300)
    masks = np.array([[True, True, False, False, False]] * 2)
    for weights, act in (({"left": 1.0, "right": 0.1}, 0), ({"left": 0.1, "right": 1.0}, 1)):
        model.objectives = weights
        acts, _ = model.predict(beliefs_of(env), deterministic=True, action_masks=masks)
        assert (acts == act).all()


def test_acts_are_seen_by_the_words_of_their_slots(tmp_path):
    """Saved with the model, whose file of vectors may be gone by then."""
    words = "request confirm select inform name alternatives bye repeat more restart area food"
    rows = np.random.default_rng(0).normal(size=(13, 4))
    lines = [f"{w} {' '.join(map(str, r))}" for w, r in zip([*words.split(), "pricerange"], rows)]
    file = tmp_path / "vectors.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    env = dialgym.sb3_vec_env("CamRestaurants-Env1-act-v0", 2, seed=0)
    kernel = {"kernel": "distributed", "vectors": str(file)}
    model = GPSarsa("GPPolicy", env, act_kernel=kernel, seed=0).learn(60)
    first = model.coordinates.slots["slot00"]
    place = {"area": 10, "food": 11, "pricerange": 12}[first]
    assert_close(model.act_kernel.found["slot00.request"], rows[0] + rows[place])
    stored = io.BytesIO()
    model.save(stored)
    file.unlink()
    stored.seek(0)
    loaded, beliefs = GPSarsa.load(stored, env), env.reset()
    for ours, theirs in zip(model.q_distribution(beliefs), loaded.q_distribution(beliefs)):
        assert np.array_equal(ours, theirs)


@agents.storable
class FirstTwo(ActKernel):
    """A kernel of your own: the first two acts are alike, whatever they are called."""

    def covariance(self, left, right):
        return 0.9 if {left, right} == {"act.0", "act.1"} else 0.0


def test_an_act_kernel_of_your_own_is_used_and_saved():
    env = vec_env(noisy_bandit())
    model = GPSarsa("GPPolicy", env, act_kernel=FirstTwo(), seed=0, **SMALL)
    x = np.ones((1, len(model.coordinates.features)))
    model.process.observe(x, ["act.0"], np.array([[2.0]]), np.ones(1))
    stored = io.BytesIO()
    model.save(stored)
    stored.seek(0)
    for each in (model, GPSarsa.load(stored, env)):
        means, _ = each.process.predict(x, model.coordinates.acts[:3])
        assert means[0, 1, 0] == pytest.approx(0.9 * means[0, 0, 0])
        assert means[0, 2, 0] == 0.0


def test_it_learns_slot_filling_and_acts_in_another_domain():
    env = dialgym.sb3_vec_env("CamRestaurants-Env1-act-v0", 8, seed=100)
    model = GPSarsa("GPPolicy", env, seed=100).learn(800)
    assert success(model, env) > 0.8
    other = dialgym.sb3_vec_env("SFRestaurants-Env1-act-v0", 8, seed=100)
    moved = model.transferred(other)
    strange = GPSarsa("GPPolicy", other, seed=100)
    assert success(moved, other) > success(strange, other) + 0.1
    moved.learn(200)


def success(model, env, dialogues=40):
    found, seen = [], env.reset()
    while len(found) < dialogues:
        masks = np.stack(env.env_method("action_masks"))
        acts, _ = model.predict(seen, action_masks=masks)
        seen, _, dones, infos = env.step(acts)
        found += [infos[row]["is_success"] for row in np.flatnonzero(dones)]
    return np.mean(found)
