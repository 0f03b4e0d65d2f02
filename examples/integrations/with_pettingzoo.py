"""PettingZoo: its checks, its wrapper that ends a game at a forbidden act, and its AEC loop.

``pip install pettingzoo``. It has no algorithms; both parties here choose at random among what
their masks allow, and the wrapper would end the dialogue with -100 at anything else.
"""

import numpy as np
from common import ACTS, TOKENS, chosen_view
from pettingzoo.test import api_test, parallel_api_test, seed_test
from pettingzoo.utils.wrappers import TerminateIllegalWrapper

import dialgym

view = chosen_view("act", "tokens")
env_id = ACTS if view == "act" else TOKENS
api_test(dialgym.aec_env(env_id, action_masks=True), num_cycles=200)
parallel_api_test(dialgym.parallel_env(env_id, action_masks=True), num_cycles=200)
seed_test(lambda: dialgym.aec_env(env_id), num_cycles=100)

env = TerminateIllegalWrapper(dialgym.aec_env(env_id, action_masks=True), illegal_reward=-100)
rng, gained = np.random.default_rng(0), 0.0
for seed in range(50):
    env.reset(seed=seed)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        gained += reward * (agent == "system")
        allowed = np.flatnonzero(info["action_mask"])
        env.step(None if terminated or truncated else int(rng.choice(allowed)))
print(f"{view}: mean return {gained / 50:.2f} of random play without a forbidden act")
if gained / 50 < -60:
    raise SystemExit(1)
