"""Exact beliefs about the hidden thing, and what each question and each guess would tell."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.tasks.posterior import entropy
from dialgym.tasks.twenty_questions.types import NO, NOTHING, UNCLEAR, YES

_LEAST = 1e-9
"""Likelihood of an answer that the rules would never give, once answers contradict each other."""


class Beliefs:
    """Bayes' rule over K things, all equally likely at first.

    The answerer of the rules does not know what the table does not know; else it says that it
    cannot tell with probability `vague`, and else says the opposite with probability `noise`, each
    time again. A wrong guess rules its thing out.

    Args:
        truth: (K, A) int8 of NO, YES, UNCLEAR.
        noise, vague: the rates.
    """

    def __init__(self, truth: np.ndarray, noise: float, vague: float) -> None:
        self.things, self.questions = truth.shape
        self.noise, self.vague = noise, vague
        self.truth, self._truth_of = truth, np.ascontiguousarray(truth.T)
        told = 1.0 - vague
        # (3, 3): probability of each answer by what is true
        self.chances = np.array(
            [
                [told * (1 - noise), told * noise, vague],
                [told * noise, told * (1 - noise), vague],
                [0.0, 0.0, 1.0],
            ]
        )
        self._doubt = entropy(self.chances)  # (3,) of an answer, by what is true
        self._is = np.concatenate([truth == value for value in (NO, YES, UNCLEAR)], 1).astype(float)

    def told(self, true: int, rng: np.random.Generator) -> int:
        """Answer to a question of the table whose truthful answer is `true`."""
        if not (self.noise or self.vague) or true == UNCLEAR:
            return true
        drawn = rng.random()
        if drawn < self.vague:
            return UNCLEAR
        return 1 - true if drawn < self.vague + (1 - self.vague) * self.noise else true

    def likelihoods(self, code: int) -> np.ndarray:
        """(K, 3) probability of each answer to a question or a guess, by the hidden thing.

        A right guess is answered YES, a wrong one NO, whatever the rates.
        """
        if code == NOTHING:
            return np.tile(self.chances[UNCLEAR], (self.things, 1))
        if code < self.questions:
            found: np.ndarray = self.chances[self.truth[:, code]]
            return found
        guess = np.zeros((self.things, 3))
        guess[:, NO] = 1.0
        guess[code - self.questions] = 0.0, 1.0, 0.0
        return guess

    def start(self) -> np.ndarray:
        """(K,) the weights of all things before the first answer."""
        return np.ones(self.things)

    def weigh(self, weights: np.ndarray, codes: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """(n, K) the weights (n, K) after one answer each, to what was asked: codes (n,).

        Weights are beliefs that do not sum to 1 yet (`normalised`). The answerer of the rules never
        contradicts itself, but another one may. Then what the rules rule out counts as all but
        impossible, so that the last answer is believed.
        """
        likelihood = self._likelihood(codes, answers)
        after = weights * likelihood
        lost = ~after.any(1)
        if lost.any():
            asked = (codes[lost] >= 0) & (codes[lost] < self.questions)
            least = np.where(asked[:, None], _LEAST, 0.0)
            before = weights[lost] / weights[lost].max(1, keepdims=True)
            after[lost] = np.maximum(before, _LEAST) * np.maximum(likelihood[lost], least)
        return after

    def weigh_all(self, weights: np.ndarray, codes: Sequence[int], answers: Sequence[int]) -> Any:
        """(K,) the weights (K,) after n answers in turn; the same as n times `weigh`."""
        if not codes:
            return weights
        asked, told = np.array(codes), np.array(answers)
        factors = np.concatenate([weights[None], self._likelihood(asked, told)])
        after = np.multiply.reduce(factors, 0)
        if after.any():
            return after
        for code, answer in zip(asked[:, None], told[:, None]):
            weights = self.weigh(weights[None], code, answer)[0]
        return weights

    def _likelihood(self, codes: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """(n, K) the probability of each answer to what was asked, by the hidden thing."""
        asked = (codes >= 0) & (codes < self.questions)
        likelihood = np.ones((len(codes), self.things))
        likelihood[asked] = self.chances[self._truth_of[codes[asked]], answers[asked, None]]
        for row in np.flatnonzero(codes >= self.questions).tolist():
            likelihood[row] = answers[row] == NO
            likelihood[row, codes[row] - self.questions] = answers[row] == YES
        return likelihood

    def yes(self, beliefs: np.ndarray) -> np.ndarray:
        """(..., A) the probability that the truthful answer is yes, for beliefs (..., K)."""
        share: np.ndarray = beliefs @ self._is[:, self.questions : 2 * self.questions]
        return share

    def gains(self, beliefs: np.ndarray) -> np.ndarray:
        """(..., A + K) bits that each question and each guess tells, for beliefs (..., K).

        The same as `dialgym.tasks.information_gain` of all `likelihoods`, by one product.
        """
        weights = beliefs @ self._is  # (..., 3 A)
        weights = weights.reshape(*beliefs.shape[:-1], 3, self.questions)
        answers = np.einsum("ta,...tq->...qa", self.chances, weights)
        asked = entropy(answers) - np.einsum("t,...tq->...q", self._doubt, weights)
        right = np.clip(beliefs, 0.0, 1.0)
        guessed = entropy(np.stack([right, 1.0 - right], -1))
        return np.concatenate([np.maximum(asked, 0.0), guessed], -1)


def normalised(weights: np.ndarray) -> np.ndarray:
    """(..., K) beliefs that sum to 1 of weights (..., K); a new array."""
    beliefs: np.ndarray = weights / weights.sum(-1, keepdims=True)
    return beliefs
