"""Saved agents over acts in the place of either party."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO

import agents
import dialgym
from agents import MLE, ActAgent, BeliefPolicy, GPTPolicy
from dialgym.simulators import BatchSpeaker
from dialgym.tasks import ActPolicy
from tests.support.by_day import by_day
from tests.support.toy_acts import Wishes

ID = "tests.support.toy_acts:Wishes-act"
TASK = Wishes()
SLOTS = "dialgym/SlotFilling-act-v0"
STOCK = {
    "dqn": {"buffer_size": 100},
    "gp-sarsa": {},
    "stock-dqn": {"buffer_size": 100},
    "maskable-ppo": {"n_steps": 8, "batch_size": 8},
}


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """The file of a clone of the user that tells everything."""
    told = dialgym.collect(ID, "tell-all", 60, seed=0, env_kwargs={"learner": "user"})
    env = dialgym.sb3_vec_env(ID, 2, learner="user", seed=0)
    path = tmp_path_factory.mktemp("user") / "model.zip"
    MLE("MlpPolicy", env, told, learning_rate=0.01, seed=0).learn(80).save(path)
    return path


def test_a_cloned_user_plays_by_name_as_a_simulator(user):
    simulator = {"name": "agents:ActAgent", "model": str(user.parent), "deterministic": True}
    assert dialgym.sb3_vec_env(ID, 2, simulator=simulator).reset().shape == (2, 9)
    scores = [
        dialgym.evaluate("ask-all", ID, 60, env_kwargs={"simulator": other}).mean_return
        for other in (simulator, "tell-all", "random")
    ]
    assert scores[0] == pytest.approx(scores[1])
    assert scores[0] > scores[2] + 0.1


def test_one_dialogue_and_many_are_the_same(user):
    agent = ActAgent(user)
    assert isinstance(agent, BatchSpeaker)
    assert isinstance(agent, ActPolicy)
    states = []
    for seed in range(20):
        state = TASK.initial(np.random.default_rng(seed))
        TASK.speak(state, "ask 0 1 2 3", np.random.default_rng(seed))
        states.append(state)
    many = agent.reply_many(TASK, states, [np.random.default_rng(i) for i in range(20)])
    singles = [agent.reply(TASK, s, np.random.default_rng(i)) for i, s in enumerate(states)]
    assert many == singles
    action = agent.act(TASK, states[0], np.random.default_rng(0))
    assert action.dtype == np.int8
    assert not (action.astype(bool) & ~TASK.acts["user"].mask(states[0])).any()


def test_it_draws_as_often_as_the_policy_is_likely_to():
    model = MLE("MlpPolicy", dialgym.sb3_vec_env(ID, 2), seed=0)
    state = TASK.initial(np.random.default_rng(0))
    agent, rng = ActAgent(model), np.random.default_rng(0)
    drawn = np.stack([agent.act(TASK, state, rng) for _ in range(400)])
    assert np.allclose(drawn.mean(0), 0.5, atol=0.1)


def test_one_act_at_a_time():
    """Of slot filling's act view: drawn within the mask, and played as a policy."""
    model = MaskablePPO(BeliefPolicy, dialgym.sb3_vec_env(SLOTS, 2, seed=0), seed=0)
    agent = ActAgent(model)
    env = gym.make(SLOTS).unwrapped
    env.reset(seed=0)
    rng, mask = np.random.default_rng(0), env.action_masks()
    drawn = [agent.act(env.task, env.dialogue.state, rng) for _ in range(300)]
    assert {type(action) for action in drawn} == {int}
    assert mask[drawn].all()
    assert len(set(drawn)) > 1
    assert np.isfinite(dialgym.evaluate(agent, SLOTS, 8).mean_return)


def test_mistakes_are_one_clear_error(user, tmp_path):
    with pytest.raises(ValueError, match=r"ActAgent: expected a model of beliefs and acts, which"):
        ActAgent(PPO(GPTPolicy, dialgym.sb3_vec_env("Wordle-20-v0", 2)))
    with pytest.raises(ValueError, match="RecurrentActorCriticPolicy keeps a state between acts"):
        ActAgent(RecurrentPPO("MlpLstmPolicy", dialgym.sb3_vec_env(SLOTS, 2)))
    with pytest.raises(FileNotFoundError):
        ActAgent(tmp_path / "nothing.zip")
    state = TASK.initial(np.random.default_rng(0))  # the system has the floor
    with pytest.raises(ValueError, match=r"ActAgent: expected beliefs of shape \(12,\), as it"):
        ActAgent(user).act(TASK, state, np.random.default_rng(0))
    assert agents.ActAgent is ActAgent


@pytest.mark.parametrize("algorithm", by_day(STOCK, "gp-sarsa", "maskable-ppo"))
def test_any_learner_over_beliefs_plays_either_side_by_its_path(algorithm, tmp_path):
    """Greedily as `dialgym.evaluate` plays it; drawn, each dialogue by its own numbers."""
    agents.train(
        SLOTS,
        algorithm,
        total_timesteps=40,
        n_envs=1,
        hyperparameters=STOCK[algorithm],
        log_dir=tmp_path / "run",
        progress_bar=False,
    )
    run = str(tmp_path / "run")
    env = gym.make("dialgym/SlotFilling-utterance-v0", learner="user", simulator=run)
    env.reset(seed=0)
    assert env.step('inform(area="north")')[0].count("system:") == 2
    scores = [
        dialgym.evaluate(policy, SLOTS, 10, (0,), deterministic=best)[SLOTS].returns.tolist()
        for policy, best in ((run, True), (ActAgent(run, True), None))
    ]
    if algorithm != "stock-dqn":  # which knows no masks, and is mended here
        assert scores[0] == scores[1]
    acts, agent = gym.make(SLOTS).unwrapped, ActAgent(run, deterministic=False)
    states = []
    for seed in range(6):
        acts.reset(seed=seed)
        states.append(deepcopy(acts.dialogue.state))
    many = agent.act_many(acts.task, states, [np.random.default_rng(i) for i in range(6)])
    assert many == [
        agent.act(acts.task, state, np.random.default_rng(i)) for i, state in enumerate(states)
    ]
