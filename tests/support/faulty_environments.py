"""A small text game of Gymnasium, sound or with one defect."""

import os
import random
import weakref

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Text

from dialgym.testing.sessions import GymnasiumSession, TextEnvironment

_LIST = """
apple bread chair dance eagle flame grape house ivory jelly kneel lemon mango night ocean pearl
queen river stone tiger uncle voice water yacht zebra
"""
WORDS = tuple(_LIST.split())
DEFECTS = {
    "seed ignored": "the seed holds",
    "members start apart": "members of a group start alike",
    "secret told": "no observation tells the secret",
    "reward beyond bounds": "rewards are within bounds",
    "mask forbids all": "masks leave something",
    "state shared": "sessions share no state",
    "noise": "noise is below the gap",
}
"""The check that finds each defect of the field, by the defect."""
MORE_DEFECTS = {
    "history kept": {"a reset leaves nothing behind"},
    "secret in info": {"no observation tells the secret"},
    "process-wide generator": {"sessions share no state", "members of a group start alike"},
    "reward is NaN": {"rewards are within bounds"},
    "sum beyond bounds": {"rewards are within bounds"},
}
"""The checks that fail for each of some further defects."""
TURNS, PRIZE = 6, 1.0


class GuessWord(gym.Env):
    """Guess one of `WORDS`; answers say if the secret comes before or after in the alphabet.

    Args:
        defect: one of `DEFECTS` or `MORE_DEFECTS`; none for a sound game.
        masks: tell by `action_masks` which words may still be guessed.
    """

    reward_range = (-1.0, 1.0)
    open_games = weakref.WeakSet()
    shared_secret = ""

    def __init__(self, defect="", masks=False):
        self.defect = defect
        self.action_space = Text(5, min_length=5, charset="abcdefghijklmnopqrstuvwxyz")
        self.action_space.sample = self._sample
        self.observation_space = Text(1000)
        self.history = ""
        self.place = len(self.open_games)
        self.open_games.add(self)
        if masks or defect == "mask forbids all":
            self.action_masks = self._masks

    def _sample(self, mask=None):
        return WORDS[int(self.action_space.np_random.integers(len(WORDS)))]

    def _masks(self):
        allowed = np.ones(len(WORDS), np.int8)
        return allowed * 0 if self.defect == "mask forbids all" and self.turn else allowed

    def reset(self, *, seed=None, options=None):
        super().reset(seed=int.from_bytes(os.urandom(4)) if self._is("seed ignored") else seed)
        if self._is("process-wide generator"):
            random.seed(seed)
        drawn = int(self.np_random.integers(len(WORDS)))
        if self._is("members start apart"):
            drawn += self.place
        self.secret = WORDS[drawn % len(WORDS)]
        if self._is("state shared"):
            type(self).shared_secret = self.secret
        self.turn = 0
        hint = f" (it is {self.secret})" if self._is("secret told") else ""
        opening = f"Guess a word that has the letter {self.secret[-1]}.{hint}"
        self.history = self.history + opening if self._is("history kept") else opening
        return self.history, self._info()

    def _is(self, defect):
        return self.defect == defect

    def _info(self, **more):
        told = {"secret_word": self.secret} if self._is("secret in info") else {}
        return {"turn": self.turn, **told, **more}

    def step(self, action):
        self.turn += 1
        secret = self.shared_secret if self._is("state shared") else self.secret
        won = action == secret
        over = won or self.turn == TURNS
        text = f"The secret word was {secret}." if over else self._compared(action, secret)
        self.history += f"\n{text}"
        return self.history, self._reward(won), over, False, self._info(is_success=won)

    def _compared(self, action, secret):
        if self._is("process-wide generator") and random.random() < 0.5:
            return "Hm."
        return "It comes after that." if secret > action else "It comes before that."

    def _reward(self, won):
        if self._is("reward is NaN") and self.turn == 3:
            return float("nan")
        if self._is("reward beyond bounds") and self.turn == 2:
            return 3 * PRIZE
        if self._is("noise"):
            return float(np.clip(self.np_random.normal(), -1, 1))
        return PRIZE if won else -0.1

    def close(self):
        self.open_games.discard(self)


def sampled(session, answers, rng):
    """One of the words."""
    return WORDS[int(rng.integers(len(WORDS)))]


def environment(defect="", **settings):
    """The game for the conformance kit."""
    returns = (-0.2, 1.0) if defect == "sum beyond bounds" else None
    return TextEnvironment(
        f"GuessWord({defect})",
        lambda: GymnasiumSession(GuessWord(defect, **settings)),
        sampled,
        GuessWord.reward_range,
        returns,
    )
