"""Doors in from TextArena's games, against the real package."""

import pickle
import random

import pytest

pytest.importorskip("textarena", reason="needs the extra `textarena`")

import dialgym
from benchmarks.tables.conformance import GAMES
from dialgym.bridges.textarena import TextArenaTask
from dialgym.testing import CheckSettings, check_environment

NUMBERS = "textarena:GuessTheNumber-v0"


def test_a_game_is_played_to_its_end():
    env = dialgym.make(NUMBERS)
    seen, _ = env.reset(seed=3)
    assert seen.startswith("user: ")
    assert "guess the number between 1 and 20" in seen
    total, over = 0.0, False
    for number in range(1, 21):
        before = seen
        seen, reward, over, cut, info = env.step(f"[{number}]")
        assert not cut
        assert seen.startswith(f"{before}system: [{number}]\nuser: ")
        assert "guess the number between" not in seen.removeprefix(before)  # news alone
        total += reward
        if over:
            break
    assert over
    assert info["is_success"] == (total > 0)


def test_its_dialogues_are_those_of_the_seed_and_of_copies():
    env = dialgym.make(NUMBERS).unwrapped
    env.reset(options={"seed": 5})
    env.step("[7]")
    saved = env.clone_state()
    first = env.step("[9]")[:4]
    env.restore_state(saved)
    assert env.step("[9]")[:4] == first
    other = pickle.loads(pickle.dumps(env.task))
    assert other.name == env.task.name


def test_findings_on_public_games():
    found = {
        game: [
            fault.check
            for fault in check_environment(
                TextArenaTask(game).environment, CheckSettings(episodes=8, texts=texts)
            ).faults
        ]
        for game, texts in GAMES.items()
    }
    grows = "a reset leaves nothing behind"
    shared = ["members of a group start alike", grows, "sessions share no state"]
    assert found == {
        "GuessTheNumber-v0": [grows],
        "Blackjack-v0": shared,
        "Minesweeper-v0": shared,
    }


def test_games_of_two_and_unknown_games_are_refused():
    with pytest.raises(ValueError, match="TicTacToe-v0 cannot be played by one"):
        dialgym.make("textarena:TicTacToe-v0").reset(seed=0)
    with pytest.raises(ValueError, match="Did you mean 'Blackjack-v0'"):
        dialgym.make("textarena:BlackJack-v0")


def test_dialogues_beside_one_another_keep_their_draws_and_the_process_its_own():
    def played(order):
        envs = [dialgym.make("textarena:Blackjack-v0") for _ in range(2)]
        heard = [[env.reset(options={"seed": 5})[0]] for env in envs]
        for row in order:
            heard[row].append(envs[row].step("[Hit]")[:2])
        return heard

    alone = played([0, 1])  # which imports the game
    before = random.getstate()
    assert played([1, 0]) == alone
    assert alone[0] == alone[1]
    assert random.getstate() == before
