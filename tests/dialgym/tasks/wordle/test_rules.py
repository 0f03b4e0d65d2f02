"""The rules of Wordle, setting by setting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialgym
from dialgym.language import Utterance, WordTrie
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.patterns import REPLIES

SMALL = ("crane", "slate", "abide", "speed", "trace", "crate", "react", "caret")


def play(task, words, secret=None, seed=0):
    """Let the system say the words; the state and the outcomes."""
    rng = np.random.default_rng(seed)
    state = task.initial(rng, {"word": secret} if secret else None)
    if task.speaker(state) == "user":
        task.speak(state, task.answers[state.secret], rng)
    return state, [task.speak(state, word, rng) for word in words]


def replies(state):
    return [line.text for line in state.lines if line.speaker == "user"]


NO_WORDS = ("", "cran", "cranes", "zzzzz", "CRANE", "c r a", "cr\ufffdne")
GAMES = {
    "won": ({}, ["speed", "abide"], ["b b y b y", "g g g g g"], [-1, 0], True),
    "lost": ({}, ["speed"] * 6, ["b b y b y"] * 6, [-1] * 6, False),
    "any five letters": (
        {"guesses": "any"}, ["zzzzz", "speed", "ab"], ["b b b b b", "b b y b y", "invalid"],
        [-1] * 3, None),
    "ILQL's feedback": ({"feedback": "ilql"}, ["speed"], ["b b y y y"], [-1], None),
    **{f"no word: {text!r}": ({}, [text] * 6, ["invalid"] * 6, [-1] * 6, False)
       for text in NO_WORDS},
}  # fmt: skip
"""Settings, what is guessed, the replies, the rewards, and success; the secret is abide."""


@pytest.mark.parametrize("game", GAMES)
def test_games(game):
    settings, guesses, expected, rewards, success = GAMES[game]
    state, outcomes = play(Wordle(**settings), guesses, "abide")
    assert replies(state) == expected
    assert [o.rewards["system"] for o in outcomes] == rewards
    assert [o.rewards["user"] for o in outcomes] == [-reward for reward in rewards]
    ends = [False] * (len(guesses) - 1) + [success is not None]
    assert [o.terminated for o in outcomes] == ends
    assert not any(o.truncated for o in outcomes)
    assert outcomes[-1].success is success


def test_rejected_guesses_cost_but_take_no_turn_until_the_limit():
    task = Wordle(invalid="reject", turns=3)
    state, outcomes = play(task, ["zzzzz", "speed", "zzzzz", "abide"], "abide")
    assert state.turns == 2
    assert outcomes[-1].success
    assert sum(o.rewards["system"] for o in outcomes) == -3
    state, outcomes = play(task, ["zzzzz"] * 3, "abide")
    assert outcomes[-1].truncated
    assert not outcomes[-1].terminated


def test_hard_mode_holds_to_the_hints():
    task = Wordle(hard_mode=True, constraint="words")
    state, _ = play(task, ["trace", "crane", "slate"], "crane")
    assert replies(state)[1] == "g g g g g"
    state, _ = play(task, ["trace", "slate", "prate"], "crane")
    assert replies(state) == ["b g g y g", "invalid", "invalid"]  # both leave the yellow c out
    words = task.constraint(state, "system")
    assert isinstance(words, WordTrie)
    assert "crane" in words.words
    assert "slate" not in words.words
    keeps = state.keeps_hints(task.guess_letters)
    assert {task.guesses[i] for i in np.flatnonzero(keeps)} == set(words.words)


def test_hard_mode_allows_the_secret_by_ilqls_feedback():
    """It colours each e of a guess, though the secret has only one."""
    task = Wordle(hard_mode=True, constraint="words", feedback="ilql")
    state, _ = play(task, ["speed"], "abide")
    assert {"abide", "dance"} <= set(task.constraint(state, "system").words)
    state, _ = play(task, ["speed", "abbot", "abide"], "abide")
    assert replies(state)[1:] == ["invalid", "g g g g g"]
    state, _ = play(Wordle(hard_mode=True), ["creed", "under", "elder"], "elder")
    assert replies(state) == ["b y y g y", "invalid", "g g g g g"]  # two letters e


def test_the_adversary_keeps_the_most_words():
    task = Wordle(answers=SMALL, guesses="answers", host="adversarial")
    state, _ = play(task, ["crane"])
    sizes = np.bincount(task.table[task.guess_index["crane"]], minlength=243)
    assert len(task.candidates(state)) == sizes.max()
    assert task.speaker(state) == "system"
    with pytest.raises(ValueError, match="a host that is adversarial never settles on a secret"):
        task.initial(np.random.default_rng(0), {"word": "crane"})


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=12)
def test_the_adversary_never_lies(seed):
    task = Wordle(host="adversarial", turns=10)
    rng = np.random.default_rng(seed)
    words = [task.guesses[i] for i in rng.integers(0, len(task.guesses), 8)]
    state, _ = play(task, words)
    left = task.candidates(state)
    assert len(left) >= 1
    for guess, reply in zip(words, replies(state)):
        patterns = task.table[task.guess_index[guess], left]
        assert {str(REPLIES[p]) for p in patterns} == {reply}


def test_a_host_can_make_the_first_guess():
    task = Wordle(answers=SMALL, guesses="answers", host="opening")
    drawn = set()
    for seed in range(60):
        state, outcomes = play(task, ["zzzzz"] * 4, seed=seed)
        assert [line.speaker for line in state.lines[:2]] == ["system", "user"]
        assert state.turns == 5
        assert not state.over
        assert sum(outcome.rewards["system"] for outcome in outcomes) == -4
        assert replies(state)[0] != "g g g g g"
        drawn.add(state.guesses[0])
    assert drawn == {*SMALL}
    assert len(task.secrets()) == len(SMALL)
    assert Wordle(host="opening", split="train").secrets()
    for few in ({"answers": SMALL[:1]}, {"turns": 1}):
        with pytest.raises(ValueError, match="expected two answers and two turns"):
            Wordle(host="opening", **few)


def test_the_hosts_guess_is_heard_and_not_learned():
    settings = {"host": "opening"}
    env = dialgym.make("Wordle-20-v0", **settings)
    assert "The first is made for you." in env.unwrapped.task.instructions["system"]
    for row in dialgym.collect("Wordle-20-v0", "random", 3, seed=0, env_kwargs=settings):
        assert [turn["said"] for turn in row["turns"]][:3] == [False, False, True]


def test_a_redrawn_secret_agrees_with_all_colours():
    task = Wordle(secret="resample")
    state, _ = play(task, ["slate", "crony", "dumpy"])
    assert state.secret in task.candidates(state)


def distribution(task, words, games):
    rng = np.random.default_rng(1)
    counts: dict[tuple, int] = {}
    for _ in range(games):
        state, _ = play(task, words, seed=int(rng.integers(2**32)))
        key = tuple(state.patterns)
        counts[key] = counts.get(key, 0) + 1
    return counts


def test_redrawing_the_secret_does_not_change_the_distribution_of_games():
    """Chi-squared over the colours of two guesses; 20 cells would reject at ~50 by chance 1e-4."""
    words, games = ["crane", "slate"], 4000
    fixed = distribution(Wordle(answers=SMALL), words, games)
    redrawn = distribution(Wordle(answers=SMALL, secret="resample"), words, games)
    cells = fixed.keys() | redrawn.keys()
    statistic = sum(
        (fixed.get(c, 0) - redrawn.get(c, 0)) ** 2 / (fixed.get(c, 0) + redrawn.get(c, 0))
        for c in cells
    )
    assert statistic < 35, (fixed, redrawn)
    assert len(cells) > 3


def test_the_host_chooses_the_secret_in_private():
    task, rng = Wordle(), np.random.default_rng(0)
    state = task.initial(rng)
    assert task.speaker(state) == "user"
    task.speak(state, "abide", rng)
    task.speak(state, "speed", rng)
    assert task.transcript(state, "user")[0] == Utterance("user", "abide", private=True)
    assert task.transcript(state, "system") == [
        Utterance("system", "speed"),
        Utterance("user", "b b y b y"),
    ]


def test_a_host_who_names_no_answer_is_given_the_drawn_word():
    task, rng = Wordle(), np.random.default_rng(0)
    state = task.initial(rng, {"word": "crane"})
    task.speak(state, "zzzzz", rng)
    assert task.answers[state.secret] == "crane"


def test_lists_from_a_file_and_from_a_sequence(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("Crane\nslate\ncrane\n")
    assert Wordle(answers=str(path)).answers == ("crane", "slate")
    assert Wordle(answers=path, guesses="answers").guesses == ("crane", "slate")
    assert Wordle(answers=["slate"], guesses=["crane"]).guesses == ("crane", "slate")
    assert Wordle(words=3).answers == Wordle().answers[:3]


def test_a_set_of_answers_is_sorted():
    assert Wordle(answers={"speed", "abide", "crane"}).answers == ("abide", "crane", "speed")


def test_lists_may_be_arrays():
    task = Wordle(answers=np.array(["abide", "speed"]), guesses=np.array(["crane"]))
    assert (task.answers, task.guesses) == (("abide", "speed"), ("abide", "crane", "speed"))
    assert {type(word) for word in (*task.answers, *task.guesses)} == {str}


def test_the_built_in_lists():
    task = Wordle()
    assert 2300 <= len(task.answers) <= 3500
    assert len(task.guesses) > 6_000
    assert set(task.answers) <= set(task.guesses)
