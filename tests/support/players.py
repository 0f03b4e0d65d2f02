"""Policies that always guess the same word, as a speaker and as a predictor of tokens."""

import gymnasium as gym
import numpy as np

SMALL = "dialgym/Wordle-20-v0"
WORD = "sleep"


class Fixed:
    """A speaker that always says the same."""

    def reply(self, task, state, rng):
        return WORD


class FixedTokens:
    """A predictor that spells the same word, letter by letter, from the observation alone."""

    def __init__(self, env_id=SMALL):
        space = gym.make(env_id).observation_space
        self.tag, self.ids = space.learner_tag, [*space.tokenizer.encode(WORD), 1]

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.array([self.ids[self._said(row)] for row in observation]), state

    def _said(self, row):
        length = np.count_nonzero(row)
        return length - 1 - np.flatnonzero(row == self.tag)[-1]


class Counting(FixedTokens):
    """Remembers what it was handed over; guesses as before."""

    def __init__(self):
        super().__init__()
        self.starts, self.masks = [], []

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, action_masks=None
    ):
        assert (state is None) == (not self.starts)
        self.starts.append(episode_start.copy())
        self.masks.append(action_masks)
        action, _ = super().predict(observation)
        assert action_masks[np.arange(len(action)), action].all()
        return action, len(self.starts)


class Narrow(FixedTokens):
    """Says that it was made for shorter observations."""

    observation_space = gym.spaces.Box(0, 31, (12,), np.int32)
    action_space = gym.spaces.Discrete(32)


class Babbler:
    """Samples tokens, of any kind, from a generator of its own."""

    def __init__(self, low=0):
        self.low, self.rng = low, np.random.default_rng(0)

    def set_random_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.rng.integers(self.low, 32, len(observation)), None
