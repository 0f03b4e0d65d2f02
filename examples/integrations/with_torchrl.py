"""TorchRL: double DQN with action masks, on a batch of dialogues.

``pip install torchrl``; after its tutorial on a first training loop and its coding of DQN. The
batch resets in the same step, and its infos are numbers alone, masks among them, so that they lie
in the tensordicts.
"""

import gymnasium as gym
import torch
from common import ACTS, chosen_view, mean_return, report
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import DTypeCastTransform, GymWrapper
from torchrl.modules import MLP, EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, SoftUpdate

torch.manual_seed(0)
view, masks = chosen_view("act"), "action_mask"
batch = gym.make_vec(ACTS, 8, autoreset_mode="SameStep", text_info=False, action_masks=True)
env = GymWrapper(batch, categorical_action_encoding=True)
env = env.append_transform(DTypeCastTransform(torch.int8, torch.bool, in_keys=[masks]))
env.set_seed(0)

single = gym.make(ACTS, action_masks=True)
count, size = single.action_space.n, single.observation_space.shape[0]
net = MLP(in_features=size, out_features=count, num_cells=[128, 128], activation_class=nn.ReLU)
value = TensorDictModule(net, in_keys=["observation"], out_keys=["action_value"])
choose = QValueModule(spec=env.action_spec_unbatched, action_mask_key=masks)
policy = TensorDictSequential(value, choose)
explore = EGreedyModule(
    env.action_spec_unbatched, annealing_num_steps=8_000, eps_end=0.05, action_mask_key=masks
)

loss = DQNLoss(policy, action_space="categorical", delay_value=True, double_dqn=True)
loss.make_value_estimator(gamma=0.99)
update = SoftUpdate(loss, eps=0.99)
optimizer = torch.optim.Adam(loss.parameters(), lr=5e-4)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(50_000), batch_size=128)
collector = Collector(
    env, TensorDictSequential(policy, explore), frames_per_batch=64, total_frames=20_032
)
for data in collector:
    data = data.reshape(-1)
    assert data[masks].gather(-1, data["action"].unsqueeze(-1)).all()
    buffer.extend(data)
    explore.step(data.numel())
    for _ in range(8):
        optimizer.zero_grad()
        loss(buffer.sample())["loss"].backward()
        optimizer.step()
        update.step()


def act(observation, info) -> int:
    with torch.no_grad():
        values = net(torch.as_tensor(observation, dtype=torch.float32))
    return int(values.masked_fill(torch.as_tensor(info[masks]) == 0, -torch.inf).argmax())


report(view, mean_return(single, act))
