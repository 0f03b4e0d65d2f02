"""AgileRL: a DQN on acts.

``pip install agilerl``; after its page on training off-policy, with a population of one. It reads
masks from `info`: ``action_masks=True``.
"""

import gymnasium as gym
import torch
from agilerl.algorithms import DQN
from agilerl.components.replay_buffer import ReplayBuffer
from agilerl.training.train_off_policy import train_off_policy
from common import ACTS, chosen_view, mean_return, report

view = chosen_view("act")
torch.manual_seed(0)
envs = gym.make_vec(ACTS, 8, autoreset_mode="SameStep", text_info=False)
agent = DQN(
    envs.single_observation_space,
    envs.single_action_space,
    net_config={"encoder_config": {"hidden_size": [128]}, "head_config": {"hidden_size": [128]}},
    batch_size=128,
    lr=5e-4,
    learn_step=4,
    tau=0.01,
    normalize_images=False,
)
(agent,), _ = train_off_policy(
    envs,
    ACTS,
    "DQN",
    [agent],
    memory=ReplayBuffer(max_size=50_000),
    max_steps=20_000,
    evo_steps=10_000,
    eval_steps=50,
    learning_delay=1_000,
    eps_decay=0.998,
    eps_end=0.05,
    verbose=False,
)


def act(observation, info) -> int:
    return int(agent.get_action(observation[None], epsilon=0.0)[0])


report(view, mean_return(gym.make(ACTS), act))
