"""True advantages against enumeration, and what is made of them."""

import gymnasium as gym
import numpy as np
import pytest

from dialgym.experiments.advantages import Decision, TurnAdvantages, agreement, true_advantages
from dialgym.language.tokenizers import END

WORDS = ["crane", "slimy", "fjord"]  # told apart by the first letter
GAME = {"answers": WORDS, "guesses": "answers", "constraint": "words", "turns": 3}


class Uniform:
    """Any word that is allowed, each as likely: by their first letters."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, action_masks=None
    ):
        drawn = self.rng.random(action_masks.shape) * action_masks
        return drawn.argmax(1), state


def value(left):
    """Of guesses drawn blindly from three words, each wrong two times in three for -1."""
    return -sum((2 / 3) ** turn for turn in range(1, left + 1))


def test_they_are_those_of_all_games():
    env = gym.make("dialgym/Wordle-v0", **GAME).unwrapped
    env.reset(seed=1, options={"word": "crane"})
    decisions, wanted = [], []
    # "slimy" is the secret of a third of the games, of none once it was wrong, "crane" of half then
    for turn, (word, wins) in enumerate([("slimy", 1 / 3), ("slimy", 0.0), ("crane", 1 / 2)]):
        spelled = np.array([*env.tokenizer.encode(word), END])
        decisions.append(Decision(env.clone_state(), spelled, turn, 0.0))
        wanted.append((1 - wins) * (value(2 - turn) - 1) - value(3 - turn))
        for token in spelled:
            _, _, over, _, _ = env.step(token)
    assert over
    worth = true_advantages(Uniform(), "dialgym/Wordle-v0", decisions, 1500, env_kwargs=GAME)
    assert (np.abs(worth.advantages - wanted) < 4 * worth.errors + 1e-9).all()
    assert (worth.errors < 0.05).all()
    np.testing.assert_allclose(worth.values, [value(3), value(2), value(1)], atol=0.08)


def test_the_hidden_thing_is_drawn_evenly_from_the_posterior():
    """With as many continuations as words a certain guess is wrong in exactly two of three."""
    env = gym.make("dialgym/Wordle-v0", **{**GAME, "turns": 1}).unwrapped
    env.reset(seed=1)
    spelled = np.array([*env.tokenizer.encode("fjord"), END])
    decision = Decision(env.clone_state(), spelled, 0, 0.0)
    settings = {**GAME, "turns": 1}
    worth = true_advantages(Uniform(), "Wordle-v0", [decision], 300, env_kwargs=settings)
    np.testing.assert_allclose(worth.advantages + worth.values, -2 / 3)


def test_what_is_hidden_may_stay_as_it_is():
    """The secret is crane: other words are wrong for certain, and crane wins."""
    env = gym.make("dialgym/Wordle-v0", **GAME).unwrapped
    env.reset(seed=1, options={"word": "crane"})
    spelled = [np.array([*env.tokenizer.encode(word), END]) for word in ("slimy", "crane")]
    decisions = [Decision(env.clone_state(), tokens, 0, 0.0) for tokens in spelled]
    worth = true_advantages(
        Uniform(), "dialgym/Wordle-v0", decisions, 1500, env_kwargs=GAME, sample_hidden=False
    )
    wanted = np.array([value(2) - 1 - value(3), -value(3)])
    assert (np.abs(worth.advantages - wanted) < 4 * worth.errors + 1e-9).all()
    np.testing.assert_allclose(worth.values, value(3), atol=0.08)


def test_turns_of_any_task_have_a_worth_in_their_dialogues():
    """Hanging up is -1 in all; what else is drawn, errors of hearing too, differs."""
    name = "dialgym/CamRestaurants-Env3-act-v0"
    env = gym.make(name).unwrapped
    env.reset(seed=0)
    bye = np.array([env.act_names.index("bye")])
    decision = Decision(env.clone_state(), bye, 0, 0.0)
    worth = true_advantages(Uniform(), name, [decision] * 3, 20, sample_hidden=False)
    np.testing.assert_allclose(worth.advantages + worth.values, -1)
    assert len(np.unique(worth.values)) == 3


def test_a_task_without_a_posterior_is_one_clear_error():
    with pytest.raises(ValueError, match="need the exact posterior of what is hidden"):
        true_advantages(Uniform(), "dialgym/SlotFilling-act-v0", [])
    with pytest.raises(ValueError, match="continuations: expected 2 or more, got 1"):
        true_advantages(Uniform(), "Wordle-20-v0", [], continuations=1)


def measured(slope, shift, noise, errors, turns=3000):
    """Estimates of known advantages, and what a measurement with errors finds of these."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=turns)
    estimates = slope * truth + shift + noise * rng.normal(size=turns)
    found = truth + errors * rng.normal(size=turns)
    decisions = [Decision(None, None, i // 5, e) for i, e in enumerate(estimates)]
    return decisions, TurnAdvantages(found, np.full(turns, errors), np.zeros(turns))


@pytest.mark.parametrize("errors", [0.0, 1.0])
def test_correlation_and_error_are_those_of_the_truth_however_it_was_measured(errors):
    found = agreement(*measured(1.0, 0.5, 0.75, errors))
    wanted = 1 / np.hypot(1, 0.75), 0.5, np.hypot(0.5, 0.75)
    for (estimate, low, high), true in zip(found, wanted):
        assert low < estimate < high
        assert high - low < 0.15
        assert estimate == pytest.approx(true, abs=0.05)


def test_estimates_that_are_right_have_no_error():
    found = agreement(*measured(1.0, 0.0, 0.0, 0.0))
    assert found.correlation[0] == pytest.approx(1)
    assert found.bias[0] == pytest.approx(0, abs=1e-9)
    assert found.error[0] == pytest.approx(0, abs=1e-6)


def test_a_truth_that_varies_less_than_it_was_measured_has_no_correlation():
    decisions, worth = measured(1.0, 0.5, 0.75, 1.0)
    found = agreement(decisions, worth._replace(errors=np.full(3000, 1.5)))
    assert np.isnan(found.correlation).all()
    assert found.bias[0] == pytest.approx(0.5, abs=0.05)


def test_a_single_dialogue_has_no_interval():
    decisions, worth = measured(1.0, 0.0, 0.0, 0.0, turns=4)
    with pytest.raises(ValueError, match="expected turns of 2 or more dialogues, got 1"):
        agreement(decisions, worth)
