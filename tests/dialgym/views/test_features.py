"""Features beside the tokens, and anchors in the info, the same in all views of a dialogue."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import dialgym
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.act_env import ActEnv
from dialgym.views.spaces import TokenBox
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv
from dialgym.views.two_party import TokenTwoPartyEnv
from dialgym.views.utterance_env import UtteranceEnv
from tests.support.toy_pictures import NAMES, SIZE, NameIt

TOYS = "tests.support.toy_pictures:NameIt"


def nearest(features):
    """The name of the picture that the features are of."""
    return NAMES[int(np.argmax(features[: len(NAMES)]))]


def spell(env, name):
    return [*env.tokenizer.encode(name), 1]


def test_the_toy_is_sound():
    check_task(NameIt(), 10)
    check_views(NameIt(), 10)
    check_batch(NameIt(), steps=80)
    check_batch(NameIt(), num_envs=4, steps=60, anchors=True)


def test_tokens_and_features_are_observed_where_that_is_asked_for():
    env = TokenEnv(NameIt(), features=True)
    assert isinstance(env.observation_space["tokens"], TokenBox)
    assert env.observation_space["features"] == gym.spaces.Box(-1.0, 2.0, (SIZE,), np.float32)
    check_env(env, skip_render_check=True)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        for token in spell(env, nearest(observation["features"])):
            observation, reward, terminated, _, info = env.step(token)
        assert (terminated, reward, info["is_success"]) == (True, 0.0, True)
    plain = TokenEnv(NameIt())
    assert isinstance(plain.observation_space, TokenBox)
    assert isinstance(plain.reset(seed=0)[0], np.ndarray)


def test_features_share_no_memory():
    env = TokenEnv(NameIt(), features=True)
    first, _ = env.reset(seed=0)
    kept = first["features"].copy()
    first["features"][:] = 9
    assert (env.step(5)[0]["features"] == kept).all()
    batch = TokenVectorEnv(NameIt(), 2, features=True)
    seen, _ = batch.reset(seed=0)
    kept = seen["features"].copy()
    seen["features"][:] = 9
    assert (batch.step(np.array([5, 5]))[0]["features"] == kept).all()


@pytest.mark.parametrize("view", [TokenEnv, UtteranceEnv, ActEnv])
def test_an_anchor_stays_until_something_is_heard(view):
    env = view(SlotFilling(env=1), anchors=True)
    _, info = env.reset(seed=0)
    assert info["anchor"] == env.task.anchor(env.dialogue.state, "system")
    action = "request(area)" if view is UtteranceEnv else 5
    before, (*_, info) = info["anchor"], env.step(action)
    assert (info["anchor"] == before) == (view is TokenEnv)
    assert info["anchor"] == env.task.anchor(env.dialogue.state, "system")
    assert "anchor" not in view(SlotFilling(env=1)).reset(seed=0)[1]


def test_workers_show_features_and_anchors():
    kwargs = {"features": True, "anchors": True}
    pool = dialgym.sb3_vec_env(TOYS, 4, workers=1, **kwargs)
    alone = dialgym.sb3_vec_env(TOYS, 4, **kwargs)
    try:
        for env in (pool, alone):
            env.seed(0)
        seen = [env.reset() for env in (pool, alone)]
        assert pool.reset_infos[3]["anchor"] == alone.reset_infos[3]["anchor"]
        rng = np.random.default_rng(0)
        for _ in range(40):
            assert seen[0].keys() == seen[1].keys() == {"tokens", "features"}
            assert all((seen[0][key] == seen[1][key]).all() for key in seen[0])
            actions = rng.integers(0, alone.action_space.n, 4)
            results = [env.step(actions) for env in (pool, alone)]
            seen = [result[0] for result in results]
            for first, other in zip(*(result[3] for result in results)):
                assert first["anchor"] == other["anchor"]
                ended = [info.get("terminal_observation") for info in (first, other)]
                if ended[0] is not None:
                    assert (ended[0]["features"] == ended[1]["features"]).all()
                    assert (ended[0]["tokens"] == ended[1]["tokens"]).all()
    finally:
        pool.close()


def test_stock_ppo_trains_on_features():
    ppo = pytest.importorskip("stable_baselines3").PPO
    pool = dialgym.sb3_vec_env(TOYS, 4, seed=0, features=True)
    model = ppo("MultiInputPolicy", pool, n_steps=16, batch_size=32, n_epochs=1, seed=0)
    assert model.learn(64).num_timesteps == 64


def test_of_two_parties_each_is_shown_its_own():
    env = TokenTwoPartyEnv(NameIt(), features=True)
    env.reset(seed=0)
    assert env.observe("system")["features"].shape == (SIZE,)
    assert isinstance(env.observe("user"), np.ndarray)
    assert isinstance(env.observation_space("user"), TokenBox)
    for text in (nearest(env.observe("system")["features"]), "yes"):
        for token in spell(env, text):
            assert env.observation_space("system").contains(env.observe("system"))
            env.step(token)
    assert env.infos["system"]["is_success"]
