"""Dialogues over several domains: watch one, imitate the rule system, and score the clone.

The system chooses any of 209 acts at once; the city is built in. `world=PATH` plays MultiWOZ's own.
"""

import torch

import agents
import dialgym

torch.set_num_threads(1)  # the fastest on networks as small as these
ID = "dialgym/MultiWOZ-act-v0"

dialogue = dialgym.collect(ID, "rule", 1, seed=4)[0]
for turn in dialogue["turns"]:
    print(f"{turn['party']:6} {turn['text'][:100]}")

expert = dialgym.collect(ID, "rule", 300, seed=0, env_kwargs={"goals": "train"})
pool = dialgym.sb3_vec_env(ID, n_envs=1)
clone = agents.MLE("MlpPolicy", pool, expert, learning_rate=2e-3, pos_weight=2.0, seed=0)
clone.learn(500)
for name, policy in {"random": "random", "clone": clone, "rule": "rule"}.items():
    result = dialgym.evaluate(policy, ID, 100, env_kwargs={"goals": "test"})
    print(f"{name}: success {result.success:.2f}, mean return {result.mean_return:.1f}")
