"""Learn from stored games, without playing: cloning, and implicit Q-learning that improves on it.

`fjord` tells the four words apart. Who plays here opens with it half of the time and then mostly
wastes it, so that it earns less than any other opening. Cloning does what was done; ILQL finds what
could have been done.
"""

import torch

import dialgym
from agents import BC, ILQL

torch.set_num_threads(1)  # the fastest on batches as small as these
ID = "dialgym/Wordle-v0"
GAME = {
    "answers": ["crane", "slimy", "bough", "fjord"],
    "guesses": "answers",
    "constraint": "words",
    "turns": 3,
    "tokenizer": "word",
}


class Waster:
    """Any object with `reply` can hold the dialogues that are stored."""

    def reply(self, task, state, rng):
        if not state.guesses:
            return "fjord" if rng.random() < 0.5 else str(rng.choice(["crane", "slimy", "bough"]))
        if state.guesses[0] == "fjord" and rng.random() < 0.75:
            return "fjord"
        return task.answers[int(rng.choice(task.candidates(state)))]


games = dialgym.collect(ID, Waster(), episodes=1000, seed=0, env_kwargs=GAME)
print(games.describe(), "\n")
env = dialgym.sb3_vec_env(ID, n_envs=1, **GAME)
common = {"learning_rate": 3e-3, "policy_kwargs": {"n_embd": 32}, "seed": 0}

clone = BC("GPTPolicy", env, games, **common)
learner = ILQL("GPTPolicy", env, games, expectile=0.9, tau=0.05, **common)
for model in (clone, learner):
    model.learn(450)
    greedy = model is learner  # a clone is true to its games where it draws its words
    result = dialgym.evaluate(model, ID, 200, env_kwargs=GAME, deterministic=greedy)
    print(f"{type(model).__name__:5} mean return {result.mean_return:.2f}")
print(f"the games {games.returns.mean():.2f}, the best there is -0.75")
