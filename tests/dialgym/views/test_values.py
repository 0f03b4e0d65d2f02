"""What the best play is worth, in infos and as a potential, against a search through the views."""

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.search import KNOWN_RULES, WordSearch

WORDS = ("miler", "miner", "miser", "slant", "crane")
GAME = {"answers": list(WORDS), "guesses": "answers", "constraint": "words", "turns": 3}


class Games:
    """All games on the secrets that may be, as an env plays and pays them."""

    def __init__(self, **options):
        self.env = gym.make("dialgym/Wordle-utterance-v0", **GAME, **options).unwrapped

    def begin(self):
        saved = []
        for word in WORDS:
            _, info = self.env.reset(seed=0, options={"word": word})
            saved.append(self.env.clone_state())
        return saved, info

    def answers(self, games, guess):
        """By what is heard: the games that go on, and all that was paid."""
        heard, paid = {}, 0.0
        for game in games:
            self.env.restore_state(game)
            seen, reward, over, _, _ = self.env.step(guess)
            paid += reward
            if not over:
                heard.setdefault(str(seen), []).append(self.env.clone_state())
        return heard.values(), paid

    def best(self, games):
        """The greatest sum of returns over games that look alike, and the guesses that have it."""
        values = {}
        for guess in WORDS:
            groups, paid = self.answers(games, guess)
            values[guess] = paid + sum(self.best(group)[0] for group in groups)
        top = max(values.values())
        return top, {guess for guess, value in values.items() if value > top - 1e-9}


def test_the_value_is_the_best_that_any_play_expects():
    games = Games(values=True)
    saved, info = games.begin()
    assert info["value"] == pytest.approx(games.best(saved)[0] / len(WORDS))
    groups, paid = games.answers(saved, "miler")
    values = []
    for group in groups:
        best, _ = games.best(group)
        games.env.restore_state(group[0])
        value = games.env.task.value(games.env.dialogue.state)
        assert value == pytest.approx(best / len(group))
        values.append(best)
    assert paid + sum(values) < games.best(saved)[0] - 0.5  # it is not the best opening


@pytest.mark.parametrize("potential", [{"value": 1.0}, {"value": -3.0}, {"entropy": 0.7}])
def test_a_potential_leaves_the_best_play_as_it_is(potential):
    """Ng, Harada and Russell (1999): every return is less by the weight times what it began at."""
    plain, shaped = Games(), Games(potential=potential)
    (total, best), (other, still_best) = (games.best(games.begin()[0]) for games in (plain, shaped))
    assert len(best) < len(WORDS)
    assert still_best == best
    [(name, weight)] = potential.items()
    begun = total / len(WORDS) if name == "value" else -np.log2(len(WORDS))
    assert other == pytest.approx(total - weight * begun * len(WORDS))


def test_a_turn_of_the_best_player_is_paid_nothing_on_average():
    games = Games(potential={"value": 1.0})
    saved, _ = games.begin()
    for guess in WORDS:
        _, paid = games.answers(saved, guess)
        plain = Games()
        q = plain.answers(plain.begin()[0], guess)
        worth = q[1] + sum(plain.best(group)[0] for group in q[0])
        assert paid == pytest.approx(worth - plain.best(plain.begin()[0])[0])


@pytest.mark.parametrize("name", ["Wordle-20-v0", "Wordle-Alike-v0", "TwentyQuestions-8-v0"])
def test_values_of_beginnings_are_the_experts_scores(name):
    env = gym.make(f"dialgym/{name}", values=True)
    expert = dialgym.registry.entry_of(f"dialgym/{name}").row.references(None)["expert"]
    assert env.reset(seed=0)[1]["value"] == pytest.approx(expert, abs=1e-3)


def test_values_that_are_not_known_are_refused():
    adversarial = gym.make("dialgym/Wordle-Adversarial-v0", values=True)
    noisy = gym.make("dialgym/TwentyQuestions-Noisy-v0", values=True)
    with pytest.raises(ValueError, match=r"values of SlotFilling: expected a task that knows what"):
        gym.make("dialgym/SlotFilling-v0", values=True)
    with pytest.raises(ValueError, match=r"unknown potential 'valeu'.*Did you mean 'value'"):
        gym.make("dialgym/Wordle-20-v0", potential={"valeu": 1.0})
    with pytest.raises(ValueError, match=r"value of Wordle: expected host='honest'.*got \('adv"):
        adversarial.reset(seed=0)
    brief = WordSearch(Wordle(words=200).table, KNOWN_RULES, 5)
    with pytest.raises(ValueError, match="more than 5 sets of words"):
        brief.value(np.arange(200), 6)
    with pytest.raises(ValueError, match="expected noise=0 and vague=0"):
        noisy.reset(seed=0)
    for potential in ({"valeu": 1.0}, {"value": "x"}):  # though rules alone are played
        with pytest.raises(ValueError, match="potential of Wordle"):
            dialgym.evaluate("random", "Wordle-20-v0", 1, env_kwargs={"potential": potential})
