"""TorchRL: double DQN on acts.

``pip install torchrl``; after its tutorial on a first training loop and its coding of DQN. Masks go
to its `ActionMask` transform, over ``GymWrapper(dialgym.MaskedObservation(env))``.
"""

import gymnasium as gym
import torch
from common import ACTS, chosen_view, mean_return, report
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv
from torchrl.modules import MLP, EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, SoftUpdate

torch.manual_seed(0)
view = chosen_view("act")
env = GymEnv(ACTS, categorical_action_encoding=True)
env.set_seed(0)

single = gym.make(ACTS)
count, size = env.action_spec.space.n, single.observation_space.shape[0]
net = MLP(in_features=size, out_features=count, num_cells=[128, 128], activation_class=nn.ReLU)
value = TensorDictModule(net, in_keys=["observation"], out_keys=["action_value"])
choose = QValueModule(spec=env.action_spec)
policy = TensorDictSequential(value, choose)
explore = EGreedyModule(env.action_spec, annealing_num_steps=8_000, eps_end=0.05)

loss = DQNLoss(policy, action_space=env.action_spec, delay_value=True, double_dqn=True)
loss.make_value_estimator(gamma=0.99)
update = SoftUpdate(loss, eps=0.99)
optimizer = torch.optim.Adam(loss.parameters(), lr=5e-4)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(50_000), batch_size=128)
collector = Collector(
    env,
    TensorDictSequential(policy, explore),
    frames_per_batch=64,
    total_frames=20_000,
    init_random_frames=1_000,
)
for data in collector:
    buffer.extend(data.reshape(-1))
    explore.step(data.numel())
    for _ in range(8):
        optimizer.zero_grad()
        loss(buffer.sample())["loss"].backward()
        optimizer.step()
        update.step()


def act(observation, info) -> int:
    with torch.no_grad():
        values = net(torch.as_tensor(observation, dtype=torch.float32))
    return int(values.argmax())


report(view, mean_return(single, act))
