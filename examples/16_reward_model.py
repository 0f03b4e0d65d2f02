"""Learn a reward from preferences, and let it be a part of what an environment pays.

Who prefers here likes replies that ask something back, and says so of pairs of replies alone. The
command is `dialgym train reward-model --data pairs.jsonl --out reward`.
"""

import json
from pathlib import Path

import gymnasium as gym

import dialgym
from agents import train_reward_model

ID = "dialgym/DailyDialog-v0"

talk = dialgym.collect(ID, "reference", episodes=2000, seed=0)
lines = [[turn["text"] for turn in row["turns"]] for row in talk]
asking = [said for said in lines if said[-1].endswith("?")]
telling = [said[-1] for said in lines if not said[-1].endswith("?")]
pairs = [
    {"context": said[:-1], "chosen": said[-1], "rejected": other}
    for said, other in zip(asking, telling, strict=False)
]
Path("pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")

trained = train_reward_model(
    "pairs.jsonl", "reward", epochs=6, width=64, learning_rate=2e-3, progress_bar=False
)
print(f"held-out pairs in the right order: {trained.metrics['accuracy']:.0%}")

rewards = {"meteor": 0.5, "learned": {"weight": 0.5, "model": "reward", "sigmoid": True}}
env = gym.make("dialgym/DailyDialog-utterance-v0", rewards=rewards)
for text in ("That is a good idea.", "That is a good idea. When do we meet?"):
    env.reset(seed=3)
    info = env.step(text)[-1]
    paid = ", ".join(f"{name} {value:.2f}" for name, value in info["reward_components"].items())
    print(f"{text} -> {paid}")
