"""Tianshou 2: DQN on acts.

``pip install tianshou``; after test/discrete/test_dqn.py of its repository. Its buffers hold
arrays, so the texts of `info` are left out. Where there are masks, it looks for them in an
observation of ``obs`` and ``mask``: ``dialgym.MaskedObservation(env, keys=("obs", "mask"))``.
"""

import gymnasium as gym
from common import ACTS, chosen_view, mean_return, report
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net


def make() -> gym.Env:
    return gym.make(ACTS, text_info=False)


def learn(steps: int) -> DiscreteQLearningPolicy:
    env = make()
    net = Net(
        state_shape=env.observation_space.shape,
        action_shape=env.action_space.n,
        hidden_sizes=[128, 128],
    )
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space)
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=5e-4),
        gamma=0.99,
        n_step_return_horizon=3,
        target_update_freq=300,
    )
    envs = DummyVectorEnv([make] * 10)
    envs.seed(0)
    collector = Collector(
        algorithm, envs, VectorReplayBuffer(50_000, buffer_num=10), exploration_noise=True
    )
    collector.reset()
    collector.collect(n_step=1_000, random=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=steps,
            collection_step_num_env_steps=100,
            update_step_num_gradient_steps_per_sample=0.1,
            batch_size=128,
            training_fn=lambda _, step: policy.set_eps_training(max(0.05, 1 - 2 * step / steps)),
            test_step_num_episodes=0,
            show_progress=False,
        )
    )
    return policy


if __name__ == "__main__":
    view = chosen_view("act")
    policy = learn(20_000)

    def act(observation, info) -> int:
        batch = Batch(obs=[observation], info=[{}])
        return int(policy(batch).act[0])

    report(view, mean_return(make(), act))
