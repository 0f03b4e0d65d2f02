"""Whole utterances instead of tokens, and a scripted policy that knows the colours."""

import gymnasium as gym
import numpy as np

import dialgym  # noqa: F401

env = gym.make("dialgym/Wordle-utterance-v0")
task = env.unwrapped.task
policy, rng = task.speaker_named("system", "optimal"), np.random.default_rng(0)

env.reset(seed=0, options={"word": "abide"})
dialogue = env.unwrapped.dialogue
over = False
while not over:
    guess = policy.reply(task, dialogue.state, rng)
    transcript, reward, terminated, truncated, info = env.step(guess)
    print(f"{guess} -> {info['reply']}   {len(task.candidates(dialogue.state))} words left")
    over = terminated or truncated
