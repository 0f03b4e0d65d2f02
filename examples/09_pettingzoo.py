"""Both sides of the dialogue as PettingZoo agents: the host chooses, the guesser guesses."""

import numpy as np

import dialgym

env = dialgym.aec_env("dialgym/Wordle-20-v0", action_masks=True, render_mode="ansi")
env.reset(seed=0)
rng = np.random.default_rng(0)
totals = dict.fromkeys(env.possible_agents, 0.0)
for agent in env.agent_iter():
    observation, reward, termination, truncation, info = env.last()
    totals[agent] += reward
    over = termination or truncation
    env.step(None if over else rng.choice(np.flatnonzero(info["action_mask"])))

print(env.render(), end="")
print(totals)
