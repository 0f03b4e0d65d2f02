"""Entropy and information, by hand and by definition; Wordle's exact posterior."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dialgym.tasks import ExactPosterior, entropy, information_gain
from dialgym.tasks.wordle import Wordle

WEIGHTS = st.floats(0.01, 1.0)


def test_entropy_in_bits() -> None:
    assert entropy(np.array([0.5, 0.5])) == 1.0
    assert entropy(np.array([1.0, 0.0])) == 0.0
    np.testing.assert_allclose(entropy(np.full((3, 8), 1 / 8)), [3.0, 3.0, 3.0])


def test_information_of_questions_by_hand() -> None:
    p = np.full(4, 0.25)
    halves = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], float)
    nothing = np.full((4, 2), 0.5)
    flipped = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    assert information_gain(p, halves) == pytest.approx(1.0)
    # a binary symmetric channel: 1 - H(0.1)
    assert information_gain(p, flipped) == pytest.approx(1 - 0.4689956, abs=1e-6)
    gains = information_gain(p, np.stack([halves, nothing, flipped]))
    np.testing.assert_allclose(gains, [1.0, 0.0, 0.5310044], atol=1e-6)


@given(arrays(float, 5, elements=WEIGHTS), arrays(float, (5, 3), elements=WEIGHTS))
def test_information_is_the_expected_fall_of_entropy(
    p: np.ndarray, likelihoods: np.ndarray
) -> None:
    p, likelihoods = p / p.sum(), likelihoods / likelihoods.sum(1, keepdims=True)
    after = 0.0
    for answer in range(3):
        joint = p * likelihoods[:, answer]
        after += joint.sum() * entropy(joint / joint.sum())
    assert information_gain(p, likelihoods) == pytest.approx(entropy(p) - after, abs=1e-9)


def test_shapes_that_do_not_agree() -> None:
    with pytest.raises(ValueError, match=r"expected beliefs \(k,\).*got \(3,\) and \(4, 2\)"):
        information_gain(np.full(3, 1 / 3), np.ones((4, 2)))


def test_wordle_believes_in_what_agrees_with_all_colours() -> None:
    task = Wordle(answers=["crane", "crate", "slate", "plate"], guesses="answers")
    assert isinstance(task, ExactPosterior)
    rng = np.random.default_rng(0)
    state = task.initial(rng, {"word": "plate"})
    task.speak(state, "plate", rng)  # the host
    assert task.hypotheses(state) == 4
    np.testing.assert_allclose(task.posterior(state), 0.25)
    task.speak(state, "crane", rng)  # green a and e alone: crate would have c and r
    np.testing.assert_allclose(task.posterior(state), [0, 0, 0.5, 0.5])
    task.speak(state, "plate", rng)
    np.testing.assert_allclose(task.posterior(state), [0, 0, 0, 1])
    assert task.truth(state) == task.answers.index("plate")


def test_an_adversarial_host_has_no_truth() -> None:
    task = Wordle(words=20, guesses="answers", host="adversarial")
    with pytest.raises(ValueError, match="never settles on a secret"):
        task.truth(task.initial(np.random.default_rng(0)))
