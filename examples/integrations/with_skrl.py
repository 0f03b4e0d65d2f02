"""skrl 2: PPO on acts. It knows no action masks.

``pip install skrl``; after its example of PPO for Gymnasium's CartPole.
"""

import gymnasium as gym
import torch
from common import ACTS, chosen_view, mean_return, report
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from torch import nn


class Policy(CategoricalMixin, Model):
    def __init__(self, observation_space, action_space, device):
        Model.__init__(
            self, observation_space=observation_space, action_space=action_space, device=device
        )
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = network(self.num_observations, self.num_actions)

    def compute(self, inputs, role):
        return self.net(inputs["observations"].float()), {}


class Value(DeterministicMixin, Model):
    def __init__(self, observation_space, action_space, device):
        Model.__init__(
            self, observation_space=observation_space, action_space=action_space, device=device
        )
        DeterministicMixin.__init__(self)
        self.net = network(self.num_observations, 1)

    def compute(self, inputs, role):
        return self.net(inputs["observations"].float()), {}


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                         nn.Linear(64, outputs))  # fmt: skip


set_seed(0)
view = chosen_view("act")
env = wrap_env(gym.make_vec(ACTS, 16))
spaces = env.observation_space, env.action_space, env.device
models = {"policy": Policy(*spaces), "value": Value(*spaces)}
config = PPO_CFG(
    rollouts=64, learning_epochs=4, mini_batches=4, learning_rate=1e-3, entropy_loss_scale=0.01
)
agent = PPO(
    models=models,
    memory=RandomMemory(memory_size=64, num_envs=env.num_envs, device=env.device),
    cfg=config,
    observation_space=env.observation_space,
    action_space=env.action_space,
    device=env.device,
)
trainer = SequentialTrainer(
    env=env, agents=agent, cfg={"timesteps": 64 * 60, "headless": True, "disable_progressbar": True}
)
trainer.train()


def act(observation, info) -> int:
    with torch.no_grad():
        seen = torch.as_tensor(observation, dtype=torch.float32)[None]
        return int(models["policy"].net(seen).argmax())


report(view, mean_return(gym.make(ACTS), act))
