"""The recipe of self-play: clones, what learns from them, and every figure of the table."""

import json

import pytest

from benchmarks.recipes import pair
from benchmarks.recipes.runs import perform
from benchmarks.recipes.tables import lines, markdown


@pytest.fixture
def small(monkeypatch):
    for name, value in {"TOKENS": 300, "GAMES": 20, "STEPS": 2, "EPISODES": 8, "ROWS": 8}.items():
        monkeypatch.setattr(pair, name, value)
    monkeypatch.setattr(pair, "NETWORK", {"n_layer": 1, "n_head": 2, "n_embd": 16})
    monkeypatch.setattr(pair, "METHODS", pair.METHODS[::2])


def test_each_pair_is_judged(small, tmp_path):
    scores = perform(pair.runs(tmp_path, seeds=1), episodes=8)
    found = [json.loads((s.run.folder / pair.FIGURES).read_text("utf-8")) for s in scores]
    clones, learned = found
    assert clones["kl system"] == pytest.approx(0, abs=1e-5)
    assert clones["kl user"] == pytest.approx(0, abs=1e-5)
    assert learned["kl user"] != 0
    for each in found:
        assert -6 <= each["own"] <= 0
        assert 0 <= each["true"] <= 1
    text = markdown(lines(scores), pair.COLUMNS, pair.BASE)
    assert "| BC pair | 1 | -" in text
    assert "| pair near BC | 1 | -" in text
    again = perform(pair.runs(tmp_path, seeds=1), episodes=8)  # nothing is done twice
    assert [s.returns.tolist() for s in again] == [s.returns.tolist() for s in scores]


def test_answers_of_the_truthful_one_are_true(small):
    game = pair.agents.SelfPlay(pair.ENV, 4, seed=0, **pair.GAME)
    task, rng = game.dialogues.games[0].task, pair.np.random.default_rng(0)
    game.dialogues.begin(range(4))
    for one, swap in zip(game.dialogues.games, (False, False, False, True)):
        state = one.dialogue_state
        for _ in range(5):
            task.speak(state, task.said[0], rng)
            answer = pair.Truthful().reply(task, state, rng)
            task.speak(state, "I can't tell" if swap else answer, rng)
    assert pair.true_answers(game) == 0.75
