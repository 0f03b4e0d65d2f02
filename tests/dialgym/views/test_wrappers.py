"""Wrappers that take action masks to libraries that know none, or know them as an observation."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import dialgym

IDS = ["dialgym/Wordle-20-v0", "dialgym/CamRestaurants-Env1-act-v0"]


def forbidden(mask, rng):
    choices = np.flatnonzero(~mask)
    return int(rng.choice(choices)) if len(choices) else int(rng.integers(len(mask)))


@pytest.mark.parametrize("choose", ["random", "nearest"])
@pytest.mark.parametrize("env_id", IDS)
def test_what_is_forbidden_is_replaced_by_what_is_allowed(env_id, choose):
    env = dialgym.ReplaceForbidden(gym.make(env_id), choose)
    rng, taken = np.random.default_rng(0), []
    inner = env.env.step
    env.env.step = lambda action: taken.append(action) or inner(action)
    env.reset(seed=0)
    for _ in range(100):
        mask = env.action_masks()
        chosen = forbidden(mask, rng)
        *_, terminated, truncated, _ = env.step(chosen)
        assert mask[taken[-1]]
        if choose == "nearest" and not mask[chosen]:
            assert abs(taken[-1] - chosen) == np.abs(np.flatnonzero(mask) - chosen).min()
        if terminated or truncated:
            env.reset()


def test_what_is_allowed_stays_and_draws_nothing():
    plain, env = gym.make(IDS[0]), dialgym.ReplaceForbidden(gym.make(IDS[0]))
    rng = np.random.default_rng(1)
    plain.reset(seed=3)
    env.reset(seed=3)
    before = env._rng.bit_generator.state
    for _ in range(60):
        action = int(rng.choice(np.flatnonzero(plain.unwrapped.action_masks())))
        ours, theirs = env.step(action), plain.step(action)
        assert np.array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
        if theirs[2]:
            env.reset()
            plain.reset()
    assert env._rng.bit_generator.state == before


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("names", [("ReplaceForbidden",), ("MaskedObservation",)], ids=str)
@pytest.mark.parametrize("env_id", IDS)
def test_a_wrapped_batch_is_so_many_wrapped_envs(env_id, names, mode):
    (name,) = names
    kwargs = {"max_episode_steps": 25}
    batch = gym.make_vec(env_id, 3, autoreset_mode=mode, **kwargs)
    ours = getattr(dialgym, f"Vector{name}")(batch)
    theirs = SyncVectorEnv(
        [lambda: getattr(dialgym, name)(gym.make(env_id, **kwargs))] * 3,
        autoreset_mode=AutoresetMode(mode),
    )
    assert ours.observation_space == theirs.observation_space
    assert same(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    ours.action_space.seed(0)
    for _ in range(60):
        actions = ours.action_space.sample()
        result, expected = ours.step(actions), theirs.step(actions)
        for got, wanted in zip(result[1:4], expected[1:4]):
            assert np.array_equal(got, wanted)
        ended = (result[2] | result[3]) & (name == "MaskedObservation")  # the masks of the dead
        assert same(result[0], expected[0], ~ended if mode == "NextStep" else slice(None))


def same(got, wanted, rows=slice(None)):
    if isinstance(got, dict):
        return set(got) == set(wanted) and all(same(got[k], wanted[k], rows) for k in got)
    return got.dtype == wanted.dtype and np.array_equal(got[rows], wanted[rows])


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.parametrize("keys", [("observation", "action_mask"), ("obs", "mask")])
@pytest.mark.parametrize("env_id", IDS)
def test_masked_observations(env_id, keys):
    env = dialgym.MaskedObservation(gym.make(env_id), keys=keys)
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert list(observation) == list(keys)
    assert observation in env.observation_space
    assert observation[keys[1]].dtype == np.int8
    assert np.array_equal(observation[keys[1]], env.unwrapped.action_masks())
    env.action_space.seed(0)
    action = env.action_space.sample(observation[keys[1]])
    assert env.action_masks()[action]


def test_the_last_observation_of_a_dialogue_is_a_dict_too():
    pool = dialgym.VectorMaskedObservation(
        gym.make_vec("dialgym/Wordle-20-v0", 2, autoreset_mode="SameStep")
    )
    pool.reset(seed=0)
    over = np.zeros(2, bool)
    while not over.any():
        *_, terminated, truncated, info = pool.step(np.full(2, 9))
        over = terminated | truncated
    last = info["final_obs"][np.flatnonzero(over)[0]]
    assert last in pool.single_observation_space
    assert last["action_mask"].all()


def test_a_wrapped_env_can_be_made_again_from_its_spec():
    env = dialgym.ReplaceForbidden(gym.make(IDS[0]), "nearest")
    again = gym.make(pickle.loads(pickle.dumps(env.spec)))
    assert "ReplaceForbidden" in str(again)


sb3 = pytest.importorskip("stable_baselines3")


def test_stock_algorithms_speak_in_words():
    """PPO without masks, in a pool whose tokens are replaced: every utterance is a word."""
    pool = dialgym.sb3_vec_env(
        "dialgym/Wordle-20-v0", 4, seed=0, wrapper=dialgym.VectorReplaceForbidden
    )
    said = []

    def note(local, _):
        said.extend(info["utterance"] for info in local["infos"] if info.get("turn"))
        return True

    sb3.PPO("MlpPolicy", pool, n_steps=32, batch_size=64, n_epochs=1, seed=0).learn(128, note)
    assert said
    assert set(said) <= set(pool.get_attr("task")[0].answers)


def test_a_wrapped_pool_goes_on_from_its_state():
    """In another number of processes, too."""

    def pool(workers):
        return dialgym.sb3_vec_env(
            "dialgym/Wordle-20-v0", 4, workers, seed=0, wrapper=dialgym.VectorReplaceForbidden
        )

    first, second = pool(1), pool(0)
    rng = np.random.default_rng(0)
    actions = rng.integers(first.action_space.n, size=(40, 4))
    first.reset()
    for chosen in actions[:13]:
        first.step(chosen)
    state = first.get_state()
    expected = [first.step(chosen)[:3] for chosen in actions]  # draws on; the state does not
    second.set_state(state)
    for chosen, wanted in zip(actions, expected):
        assert all(map(np.array_equal, second.step(chosen)[:3], wanted))
    with pytest.raises(ValueError, match=r"set_state: expected what get_state of a VectorReplace"):
        second.set_state(state["env"])
    first.close()
    second.close()


def test_stock_algorithms_read_masks():
    pool = dialgym.sb3_vec_env(
        "dialgym/Wordle-20-v0", 2, seed=0, wrapper=dialgym.VectorMaskedObservation
    )
    model = sb3.PPO("MultiInputPolicy", pool, n_steps=64, batch_size=64, n_epochs=1, seed=0)
    model.learn(128)
    assert set(pool.reset()) == {"observation", "action_mask"}


def test_a_pool_of_single_envs_takes_the_wrapper_as_stable_baselines3_does():
    pool = dialgym.make_sb3_pool(
        "dialgym/Wordle-20-v0", 2, vec_env="dummy", wrapper_class=dialgym.ReplaceForbidden
    )
    assert pool.env_is_wrapped(dialgym.ReplaceForbidden) == [True, True]
