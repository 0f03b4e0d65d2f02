"""PPO in one file, CleanRL's way: Gymnasium's vector API and PyTorch, nothing else.

Vector envs reset a finished dialogue at the next step by default; that step takes an action which
has no effect, so it is left out of the loss.
"""

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import dialgym  # noqa: F401

ENV_ID = "dialgym/Wordle-20-v0"
FIELDS = ("obs", "mask", "action", "logp", "value", "reward", "term", "end", "skip")
ENVS, STEPS, UPDATES, EPOCHS, MINIBATCH = 32, 72, 3, 4, 576
GAMMA, LAMBDA, CLIP, ENTROPY, RATE, SEED = 1.0, 0.95, 0.2, 0.01, 1e-3, 0


class Agent(nn.Module):
    """Embeds each position's token; two heads."""

    def __init__(self, vocab_size: int, window: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, 16, padding_idx=0)
        self.trunk = nn.Sequential(nn.Flatten(), nn.Linear(16 * window, 128), nn.Tanh())
        self.policy, self.value = nn.Linear(128, vocab_size), nn.Linear(128, 1)

    def forward(self, obs, mask):  # (B, L), (B, V)
        hidden = self.trunk(self.embedding(obs))
        logits = self.policy(hidden).masked_fill(~mask, -1e8)
        return torch.distributions.Categorical(logits=logits), self.value(hidden).squeeze(-1)


torch.manual_seed(SEED)
torch.set_num_threads(1)
rng = np.random.default_rng(SEED)
envs = gym.make_vec(ENV_ID, num_envs=ENVS)
vocab_size, window = envs.single_action_space.n, envs.single_observation_space.shape[0]
agent = Agent(vocab_size, window)
optimizer = torch.optim.Adam(agent.parameters(), lr=RATE)


def tensor(array, dtype=torch.float32):
    return torch.as_tensor(array, dtype=dtype)


obs, _ = envs.reset(seed=SEED)
starts = np.zeros(ENVS, bool)  # this step only resets the dialogue
for update in range(UPDATES):
    store = {name: [] for name in FIELDS}
    returns = []
    for _ in range(STEPS):
        mask = envs.unwrapped.action_masks()
        with torch.no_grad():
            policy, value = agent(tensor(obs, torch.long), tensor(mask, torch.bool))
            action = policy.sample()
        following, reward, terminated, truncated, info = envs.step(action.numpy())
        row = (obs, mask, action, policy.log_prob(action), value, reward, terminated,
               terminated | truncated, starts)  # fmt: skip
        for name, item in zip(store, row):
            store[name].append(tensor(item))
        returns += (-info["turn"] + info["is_success"])[terminated | truncated].tolist()
        obs, starts = following, terminated | truncated

    with torch.no_grad():
        mask = tensor(envs.unwrapped.action_masks(), torch.bool)
        _, bootstrap = agent(tensor(obs, torch.long), mask)
    data = {name: torch.stack(items) for name, items in store.items()}  # each (T, N, ...)
    values = torch.cat([data["value"], bootstrap[None]])
    advantage, last = torch.zeros(STEPS, ENVS), torch.zeros(ENVS)
    for t in reversed(range(STEPS)):
        # bootstrap through truncation, never through termination; the trace stops at both
        delta = data["reward"][t] + GAMMA * values[t + 1] * (1 - data["term"][t]) - values[t]
        last = delta + GAMMA * LAMBDA * (1 - data["end"][t]) * last
        advantage[t] = last
    data["advantage"], data["target"] = advantage, advantage + data["value"]
    flat = {name: item.flatten(0, 1) for name, item in data.items()}
    useful = np.flatnonzero(flat["skip"].numpy() == 0)

    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(useful), max(1, len(useful) // MINIBATCH)):
            batch = {name: item[rows] for name, item in flat.items()}
            policy, value = agent(batch["obs"].long(), batch["mask"].bool())
            ratio = (policy.log_prob(batch["action"]) - batch["logp"]).exp()
            gain = (batch["advantage"] - batch["advantage"].mean()) / batch["advantage"].std()
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            loss = -torch.min(ratio * gain, clipped * gain).mean()
            loss = loss + 0.5 * (value - batch["target"]).pow(2).mean()
            loss = loss - ENTROPY * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    print(f"update {update + 1}: mean return {np.mean(returns):.2f} over {len(returns)} games")
