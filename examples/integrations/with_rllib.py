"""RLlib: PPO on acts, and on tokens with its example of a masking module.

``pip install "ray[rllib]"``; after its getting-started page. Its encoders take floats, so integer
observations of token views need Gymnasium's `DtypeObservation`, with any environment.
"""

import gymnasium as gym
import numpy as np
import torch
from common import ACTS, TOKENS, chosen_view, mean_return, report
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

import dialgym


def make(view: str) -> gym.Env:
    if view == "act":
        return gym.make(ACTS)
    floats = gym.wrappers.DtypeObservation(gym.make(TOKENS), np.float32)
    return dialgym.MaskedObservation(floats, keys=("observations", "action_mask"))


view = chosen_view("act", "tokens")
register_env(view, lambda _: make(view))
config = (
    PPOConfig()
    .environment(view)
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
    .training(lr=1e-3, train_batch_size=2_048, minibatch_size=256, num_epochs=6, gamma=0.99)
    .debugging(seed=0)
)
if view == "tokens":
    config = config.rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
algorithm = config.build_algo()
for _ in range(25 if view == "act" else 30):
    algorithm.train()
module = algorithm.get_module()


def act(observation, info) -> int:
    def batch(array):
        return torch.as_tensor(np.asarray(array, np.float32))[None]

    seen = observation
    seen = {k: batch(v) for k, v in seen.items()} if view == "tokens" else batch(seen)
    with torch.no_grad():
        return int(module.forward_inference({"obs": seen})["action_dist_inputs"].argmax())


report(view, mean_return(make(view), act))
algorithm.stop()
