"""Each scripted policy does what its name says."""

import numpy as np
import pytest

from dialgym.tasks.wordle import Wordle, policies
from dialgym.tasks.wordle.policies import information


def finish(task, policy, secret, seed=0):
    rng = np.random.default_rng(seed)
    state = task.initial(rng, {"word": secret} if secret else None)
    state.settled = True
    while not state.over:
        before = (list(state.guesses), state.turns)
        guess = policy.reply(task, state, rng)
        assert (state.guesses, state.turns) == before, "a policy must not change the state"
        task.speak(state, guess, rng)
    return state


@pytest.fixture(scope="module")
def task():
    return Wordle(words=60)


@pytest.mark.parametrize("name", Wordle.speakers["system"])
def test_every_policy_plays_legal_games_and_repeats_with_its_seed(name, task):
    first = finish(task, task.speaker_named("system", name), None, seed=3)
    second = finish(task, task.speaker_named("system", name), None, seed=3)
    assert first.guesses == second.guesses
    assert -1 not in first.patterns


def slow_information(task, guess, candidates):
    parts: dict[int, int] = {}
    for secret in candidates:
        pattern = int(task.table[task.guess_index[guess], secret])
        parts[pattern] = parts.get(pattern, 0) + 1
    n = len(candidates)
    return -sum(k / n * np.log(k / n) for k in parts.values())


def test_information_is_the_entropy_of_the_answer(task):
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 60):
        candidates = rng.permutation(len(task.answers))[:size]
        rows = rng.integers(0, len(task.guesses), 20)
        expected = [slow_information(task, task.guesses[r], candidates) for r in rows]
        np.testing.assert_allclose(information(task.table, rows, candidates), expected, atol=1e-9)


def test_optimal_takes_the_most_informative_word(task):
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    everything = np.arange(len(task.answers))
    best = max(slow_information(task, word, everything) for word in task.guesses)
    guess = task.speaker_named("system", "optimal-all").reply(task, state, rng)
    assert slow_information(task, guess, everything) == pytest.approx(best)
    guess = task.speaker_named("system", "optimal").reply(task, state, rng)
    assert guess in task.answers


def test_consistent_policies_never_contradict_the_colours(task):
    for name in ("optimal", "start-words", "monte-carlo"):
        state = finish(task, task.speaker_named("system", name), "heard")
        for turn, guess in enumerate(state.guesses):
            replay = task.initial(np.random.default_rng(0), {"word": "heard"})
            replay.settled = True
            for earlier in state.guesses[:turn]:
                task.speak(replay, earlier, np.random.default_rng(0))
            assert task.answer_index[guess] in task.candidates(replay)


def test_openers_of_your_own(tmp_path):
    task = Wordle(answers=["heard", "house", "crane", "slate", "about"], guesses="answers")
    own = tmp_path / "openers.txt"
    own.write_text("house\nABOUT\n")
    for name, settings in [
        ("start-words", {"start_words": ["house", "about"]}),
        ("expert", {"start_words": str(own)}),
        ("repeat", {"start": ["house", "about", "zzzzz"]}),
    ]:
        policy = task.speaker_named("system", name, **settings)
        opened = {finish(task, policy, "heard", seed).guesses[0] for seed in range(20)}
        assert opened == {"house", "about"}, name
    with pytest.raises(ValueError, match="Wordle start_words: expected words of 5 letters a-z"):
        policies.StartWords(["houses"])


def test_repeat_repeats_its_first_guesses(task):
    state = finish(task, policies.Repeat(first_n=2), "heard")
    assert set(state.guesses) <= set(state.guesses[:2])


def test_wrong_is_never_right_once_it_can_know(task):
    state = finish(task, policies.Wrong(), "heard", seed=5)
    assert "heard" not in state.guesses[1:]


def test_random_mixture_goes_from_random_to_consistent(task):
    games = 200
    lengths = {}
    for smart in (0.0, 1.0):
        policy = policies.WordMixture(smart)
        states = [finish(task, policy, None, seed) for seed in range(games)]
        lengths[smart] = np.mean([-sum(p != 242 for p in s.patterns) for s in states])
    assert lengths[1.0] > lengths[0.0] + 2


def test_policies_are_ordered_by_skill(task):
    def mean_return(name, games=40):
        policy = task.speaker_named("system", name)
        wrong = [sum(p != 242 for p in finish(task, policy, None, s).patterns)
                 for s in range(games)]  # fmt: skip
        return -np.mean(wrong)

    assert mean_return("optimal") > mean_return("random-mixture") > mean_return("wrong")
    assert mean_return("monte-carlo", 15) > mean_return("random-mixture", 15)


def test_bad_arguments_are_one_clear_error(task):
    with pytest.raises(ValueError, match="guesses must be 'consistent' or 'all'; got 'some'"):
        policies.OptimalWordle("some")
    with pytest.raises(ValueError, match="expected 2 weights >= 0"):
        policies.Mixture(weights=[1.0])
    with pytest.raises(ValueError, match=r"unknown speaker for the system 'optimum'.*'optimal'"):
        task.speaker_named("system", "optimum")


@pytest.mark.slow
def test_mean_guesses_on_the_well_known_list(data):
    task = Wordle(
        answers=data / "wordle" / "wordle_official.txt",
        guesses=data / "wordle" / "wordle_official_guess.txt",
    )
    policy = task.speaker_named("system", "optimal")
    guesses = [len(finish(task, policy, word).guesses) for word in task.answers]
    assert np.mean(guesses) <= 3.65
