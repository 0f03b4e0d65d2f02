"""The act view: beliefs in, summary acts out."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import dialgym
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.two_party import ActTwoPartyEnv
from dialgym.views.utterance_env import UtteranceEnv

TASK = SlotFilling("Restaurants", 6)


def legal(mask, rng):
    return int(rng.choice(np.flatnonzero(mask)))


def test_it_shows_the_belief_and_says_the_act():
    env = ActEnv(TASK)
    observation, info = env.reset(seed=0)
    assert info["reward_components"] == {"turn": 0.0, "closing": 0.0, "success": 0.0}
    assert (observation == TASK.acts["system"].observe(env.dialogue.state)).all()
    chosen = env.act_names.index("request_food")
    observation, reward, terminated, truncated, info = env.step(chosen)
    assert (reward, terminated, truncated) == (-1, False, False)
    assert info["utterance"] == "request(food)"
    assert info["turn"] == 1
    assert info["reward_components"] == {"turn": -1, "closing": 0, "success": 0}
    assert observation.dtype == np.float32
    assert (observation == TASK.acts["system"].observe(env.dialogue.state)).all()


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_utterance_view_with_the_acts_spelled_out(seed):
    """Only where the act itself is drawn by chance do the generators differ."""
    acts, rng = ActEnv(SlotFilling("Restaurants", 3)), np.random.default_rng(seed)
    texts = UtteranceEnv(acts.task)
    acts.reset(seed=seed)
    texts.reset(seed=seed)
    over = False
    while not over:
        before = acts.np_random.bit_generator.state
        chosen = legal(acts.action_masks(), rng)
        acts.acts.text(acts.dialogue.state, chosen, acts.np_random)
        drawn = acts.np_random.bit_generator.state != before
        acts.np_random.bit_generator.state = before
        if drawn:
            chosen = acts.act_names.index("request_area")
        _, reward, over, _, info = acts.step(chosen)
        _, same, done, _, other = texts.step(info["utterance"])
        assert (reward, over, info["reply"]) == (same, done, other["reply"])
    assert info["transcript"] == other["transcript"]
    assert info["is_success"] == other["is_success"]


def test_masks_come_with_the_info_if_asked_for():
    env = gym.make("dialgym/CamRestaurants-Env3-act-v0", action_masks=True)
    _, info = env.reset(seed=0)
    assert info["action_mask"].dtype == np.int8
    info = env.step(0)[-1]
    assert (info["action_mask"] == env.unwrapped.action_masks()).all()
    assert env.unwrapped.action_masks().shape == (env.action_space.n,)


@pytest.mark.parametrize("env_id", ["CamRestaurants-Env2", "CamRestaurants-Env4"])
def test_without_masks_all_but_two_acts_are_free(env_id):
    env = gym.make(f"dialgym/{env_id}-act-v0").unwrapped
    env.reset(seed=0)
    free = {name for name, allowed in zip(env.act_names, env.action_masks()) if allowed}
    assert set(env.act_names) - free == {"repeat", "restart"}


def test_masked_acts_can_be_chosen_nonetheless():
    env = ActEnv(SlotFilling("Restaurants"))
    for name in env.act_names:
        env.reset(seed=1)
        _, reward, *_ = env.step(env.act_names.index(name))
        assert reward == -1


def test_a_legal_player_always_has_a_choice():
    rng, env = np.random.default_rng(0), ActEnv(TASK)
    for seed in range(20):
        env.reset(seed=seed)
        over, turns = False, 0
        while not over:
            _, _, over, _, _ = env.step(legal(env.action_masks(), rng))
            turns += 1
        assert turns <= 25


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_batch_is_as_many_single_dialogues(mode):
    batch, singles = ActVectorEnv(TASK, 3, autoreset_mode=mode), [ActEnv(TASK) for _ in range(3)]
    rng = np.random.default_rng(0)
    seen, _ = batch.reset(seed=5)
    for row, env in enumerate(singles):
        assert (env.reset(seed=5 + row)[0] == seen[row]).all()
    late = [False] * 3
    for _ in range(60):
        masks = batch.action_masks()
        actions = np.array([legal(mask, rng) for mask in masks])
        seen, rewards, over, _, info = batch.step(actions)
        for row, env in enumerate(singles):
            if late[row]:
                late[row] = False
                assert (env.reset()[0] == seen[row]).all()
                continue
            observation, reward, done, _, own = env.step(actions[row])
            assert (reward, done) == (rewards[row], over[row])
            if done and mode == "SameStep":
                assert (info["final_obs"][row] == observation).all()
                assert info["final_info"]["transcript"][row] == own["transcript"]
                observation, _ = env.reset()
            else:
                late[row] = done
            assert (observation == seen[row]).all()
            assert (env.action_masks() == batch.action_masks()[row]).all()


@pytest.mark.parametrize("action", [-1, 16, 1.5, "bye", None])
def test_an_impossible_action_is_one_clear_error(action):
    env = ActEnv(TASK)
    env.reset(seed=0)
    with pytest.raises(
        ValueError, match="action of SlotFilling: expected a whole number from 0 to"
    ):
        env.step(action)
    batch = ActVectorEnv(TASK, 2)
    batch.reset(seed=0)
    message = r"actions of SlotFilling: expected \(2,\) whole numbers from 0 to 15; got"
    for actions in ([0, action], [0], 0):
        with pytest.raises(ValueError, match=message):
            batch.step(actions)


def test_stable_baselines3_gets_a_batch_and_its_masks():
    vec_env = dialgym.sb3_vec_env("SlotFilling-act-v0", 3, seed=4)
    env = gym.make_vec("dialgym/SlotFilling-act-v0", 3, autoreset_mode="SameStep")
    observation, _ = env.reset(seed=4)
    assert np.array_equal(vec_env.reset(), observation)
    ended, rng = 0, np.random.default_rng(0)
    while ended < 5:
        masks = env.unwrapped.action_masks()
        assert np.array_equal(vec_env.env_method("action_masks"), masks)
        actions = [rng.choice(np.flatnonzero(mask)) for mask in masks]
        observation, reward, terminated, truncated, info = env.step(np.array(actions))
        seen, gained, done, infos = vec_env.step(np.array(actions))
        assert np.array_equal(seen, observation)
        assert np.array_equal(gained, reward)
        assert np.array_equal(done, terminated | truncated)
        for row in np.flatnonzero(done):
            assert np.array_equal(infos[row]["terminal_observation"], info["final_obs"][row])
        ended += done.sum()


def test_it_wants_a_reset():
    env = ActEnv(TASK)
    for call in (lambda: env.step(0), env.action_masks, ActVectorEnv(TASK, 1).action_masks):
        with pytest.raises(ResetNeeded):
            call()


def test_only_tasks_with_acts_and_only_parties_that_have_some():
    with pytest.raises(ValueError, match=r"expected a task with dialogue acts .* got Wordle"):
        ActEnv(Wordle())

    class Half(SlotFilling):
        def __init__(self):
            super().__init__()
            self.acts = {"system": self.acts["system"]}

    message = r"expected a party with acts \(system\); got 'user', which has none"
    with pytest.raises(ValueError, match=message):
        ActEnv(Half(), learner="user")
    with pytest.raises(ValueError, match=message):
        ActTwoPartyEnv(Half())
