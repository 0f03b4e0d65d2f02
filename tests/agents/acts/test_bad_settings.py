"""Settings and environments that a learner over acts refuses, each with one clear error."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import dialgym
from agents import A2C, BBQN, DQN, ENAC, GDPL, MADPL, PG, Committee, FeudalDQN, FeudalGain, GPSarsa
from tests.support.act_mdps import five_states, vec_env
from tests.support.slot_mdp import slot_vec_env

COUNT = "expected {} to be a whole number from 1; got 0"
SETTINGS = [
    (A2C, {"batch_size": 0}, "A2C: " + COUNT.format("batch_size")),
    (A2C, {"gradient_steps": 2}, "A2C: batch_size None takes each dialogue once.* got 2"),
    (A2C, {"dialogues_per_update": 0}, "A2C: " + COUNT.format("dialogues_per_update")),
    (BBQN, {"divergence": "reverse"}, "divergence of BBQN must be one of 'kl', 'alpha'"),
    (BBQN, {"alpha": 0}, "BBQN: expected alpha to be a number above 0 to 1; got 0"),
    (BBQN, {"n_samples": 0}, "BBQN: " + COUNT.format("n_samples")),
    (BBQN, {"divergence": "alpha", "kl_coef": 0}, "'alpha': expected kl_coef to be a number above"),
    (ENAC, {"batch_size": 8, "damping": 0}, "with batch_size: expected damping to be a number ab"),
    (DQN, {"n_steps": 0}, "DQN: " + COUNT.format("n_steps")),
    (
        DQN, {"n_steps": 2, "policy_kwargs": {"curiosity": {"scale": 0.01}}},
        "DQN: expected n_steps=1 with curiosity.*got 2",
    ),
    (DQN, {"policy_kwargs": {"curiosity": {"scal": 1}}}, "unknown setting 'scal' in curiosity"),
    (
        DQN, {"policy_kwargs": {"uncertainty": "nois"}},
        "uncertainty of QPolicy must be one of .*Did you mean",
    ),
    (
        DQN, {"policy_kwargs": {"uncertainty": "dropout", "uncertainty_kwargs": {"rat": 0.1}}},
        "unknown setting 'rat' in uncertainty_kwargs of dropout",
    ),
    (FeudalGain, {"n_steps": 3}, "FeudalGain: expected n_steps=1, got 3"),
    (
        FeudalDQN, {"policy_kwargs": {"uncertainty": "bootstrap"}},
        "feudal policies: they have no bootstrapped heads",
    ),
    (
        FeudalDQN, {"policy_kwargs": {"curiosity": {}}},
        "feudal policies: expected no curiosity, whose models are of",
    ),
    (GDPL, {"estimation": {"variant": "best"}}, "variant of estimation must be one of 'turns'"),
    (GDPL, {"estimation": {"hiden": 3}}, "unknown setting 'hiden' in estimation"),
    (GDPL, {"estimation": {"weight_clip": 0}}, "estimation: expected weight_clip to be a number"),
    (GPSarsa, {"sigma": 0.0}, "expected sigma to be a number above 0; got 0.0"),
    (GPSarsa, {"budget": 0}, COUNT.format("budget")),
    (GPSarsa, {"kernel": "rbg"}, "Did you mean 'rbf'"),
    (GPSarsa, {"kernel": "rbf", "kernel_kwargs": {"variants": 1}}, "variance"),
    (Committee, {"credit": "all"}, "credit of Committee must be one of"),
    (PG, {"baseline": "best"}, "baseline of PG must be one of 'none', 'mean', 'value'"),
    (PG, {"batch_size": 0}, "PG: " + COUNT.format("batch_size")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "settings", "message"), SETTINGS, ids=lambda x: getattr(x, "__name__", None)
)
def test_settings(algorithm, settings, message):
    env = slot_vec_env(five_states(), 1)
    policy = "GPPolicy" if issubclass(algorithm, GPSarsa) else "MlpPolicy"
    with pytest.raises(ValueError, match=message):
        algorithm(policy, env, **settings)


class TwoParts(gym.Env):
    """Spaces alone."""

    observation_space = gym.spaces.Dict({"a": gym.spaces.Box(0, 1, (2,), np.float32)})
    action_space = gym.spaces.Discrete(2)


ENVIRONMENTS = {
    "acts at once": (
        lambda: A2C("MlpPolicy", dialgym.sb3_vec_env("MultiWOZ-act-v0", 1)), "Discrete",
    ),
    "a mapping": (
        lambda: DQN(agents.QPolicy, DummyVecEnv([TwoParts])),
        "DQN: expected observations of one array, got Dict",
    ),
    "words": (
        lambda: PG("MlpPolicy", dialgym.sb3_vec_env("Wordle-20-v0", 2)),
        "token views take a GPT policy",
    ),
    "one party": (
        lambda: MADPL("MlpPolicy", make_vec_env("CartPole-v1", 2)),
        "MADPL: expected an act view of dialgym",
    ),
    "no structure": (
        lambda: GPSarsa("GPPolicy", vec_env(five_states())).transferred(vec_env(five_states())),
        "expected an env that says what its beliefs and acts are about",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments(name):
    make, message = ENVIRONMENTS[name]
    with pytest.raises((ValueError, AssertionError), match=message):
        make()
