"""CleanRL: its ppo.py on acts, in one file with Gymnasium and PyTorch alone.

``pip install torch``; the loop is that of cleanrl/ppo.py, over the batched view in the reset mode
that it was written for. Example 08, one folder up, is the same on tokens, with masks.
"""

import gymnasium as gym
import numpy as np
import torch
from common import ACTS, chosen_view, mean_return, report
from torch import nn
from torch.distributions import Categorical

ENVS, STEPS, UPDATES, EPOCHS, MINIBATCH = 32, 64, 40, 4, 512
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 0.99, 0.95, 0.2, 0.01, 1e-3


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                         nn.Linear(64, outputs))  # fmt: skip


view = chosen_view("act")
torch.manual_seed(0)
envs = gym.wrappers.vector.RecordEpisodeStatistics(
    gym.make_vec(ACTS, ENVS, autoreset_mode="SameStep")
)
size, count = envs.single_observation_space.shape[0], envs.single_action_space.n
actor, critic = network(size, count), network(size, 1)
parameters = [*actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=RATE, eps=1e-5)

following = torch.as_tensor(envs.reset(seed=0)[0])
for _ in range(UPDATES):
    seen = torch.zeros(STEPS, ENVS, size)
    actions, logps, rewards, dones, values = torch.zeros(5, STEPS, ENVS)
    for t in range(STEPS):
        seen[t] = following
        with torch.no_grad():
            policy, values[t] = Categorical(logits=actor(seen[t])), critic(seen[t])[:, 0]
            actions[t] = chosen = policy.sample()
            logps[t] = policy.log_prob(chosen)
        observation, reward, terminated, truncated, _ = envs.step(chosen.numpy())
        following = torch.as_tensor(observation)
        rewards[t], dones[t] = torch.as_tensor(reward), torch.as_tensor(terminated | truncated)
    with torch.no_grad():
        after, last = critic(following)[:, 0], torch.zeros(ENVS)
        advantages = torch.zeros(STEPS, ENVS)
        for t in reversed(range(STEPS)):
            delta = rewards[t] + GAMMA * after * (1 - dones[t]) - values[t]
            advantages[t] = last = delta + GAMMA * LAMBDA * (1 - dones[t]) * last
            after = values[t]
    columns = (seen, actions, logps, advantages, advantages + values)
    seen, actions, logps, advantages, targets = (column.flatten(0, 1) for column in columns)
    for _ in range(EPOCHS):
        for rows in torch.randperm(STEPS * ENVS).split(MINIBATCH):
            policy = Categorical(logits=actor(seen[rows]))
            ratio = (policy.log_prob(actions[rows]) - logps[rows]).exp()
            gain = advantages[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            loss += 0.5 * (critic(seen[rows])[:, 0] - targets[rows]).pow(2).mean()
            loss -= ENTROPY * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
print(f"last 100 training dialogues: {np.mean(envs.return_queue):.2f}")


def act(observation, info) -> int:
    with torch.no_grad():
        return int(actor(torch.as_tensor(observation)).argmax())


report(view, mean_return(gym.make(ACTS), act))
