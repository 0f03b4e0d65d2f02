"""Doors in from OpenEnv's servers, against the real package."""

import gc
import socket

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`")

import dialgym
from dialgym.bridges import openenv
from dialgym.bridges.openenv_client import OpenEnvSession, OpenEnvTask, text_field
from dialgym.errors import ServiceError
from dialgym.testing import CheckSettings, check_environment
from tests.support.app_server import app_server
from tests.support.faulty_environments import GuessWord
from tests.support.openenv_words import guess_word_app

GUESSES = ["quiet", "Crisp ", "no such word at all", "level", "radio", "ocean"]
GAP = CheckSettings(episodes=16, gap=0.8, rewards=GuessWord.reward_range, texts=("apple", "queen"))


@pytest.fixture(scope="module")
def wordle():
    with app_server(openenv.app("Wordle-20-v0")) as url:
        yield url


def test_a_round_trip_gives_the_plain_environment(wordle):
    plain, there = dialgym.Chat("Wordle-20-v0"), dialgym.make(f"openenv:{wordle}")
    for seed in range(5):
        opening = plain.reset(seed)[-1]["content"]
        seen, _ = there.reset(options={"seed": seed})
        lines = [f"user: {opening}"]
        assert seen.splitlines() == lines
        for text in GUESSES:
            reply = plain.step(text)
            seen, *result, info = there.step(text)
            lines += [f"system: {text}", f"user: {reply.text}"]
            assert seen.rstrip("\n") == "\n".join(lines).rstrip("\n")
            assert result == [reply.reward, reply.terminated, reply.truncated]
            assert info["is_success"] == reply.info["is_success"]
            if reply.over:
                break
    there.close()


def test_ours_behind_a_server_passes_the_kit(wordle):
    report = check_environment(OpenEnvTask(wordle).environment, CheckSettings(episodes=8))
    assert not report.faults


def test_a_state_that_shows_the_secret_is_found():
    with app_server(guess_word_app("secret in info")) as url:
        report = check_environment(OpenEnvTask(url).environment, GAP)
    (fault,) = report.faults
    assert fault.evidence.startswith("info['state.secret_word'] is there before the end")


def test_tools_take_the_address(wordle):
    result = dialgym.evaluate("quoted-moves", f"openenv:{wordle}", episodes=2, seeds=[0])
    assert -6 <= result.overall.returns.mean() <= 0


def test_no_server_and_no_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ServiceError, match=f"no answer from the service at {url}"):
            dialgym.make(f"openenv:{url}")
    with pytest.raises(ValueError, match="expected the address of a server"):
        text_field("localhost")


def test_a_server_of_one_session_plays_one_dialogue_after_another():
    with app_server(openenv.app("Wordle-20-v0", max_sessions=1)) as url:
        chat = dialgym.Chat(f"openenv:{url}", max_episode_steps=2)
        for seed in range(3):
            chat.reset(seed)
            chat.step("crane")
        chat.close()
        del chat
        gc.collect()
        other = dialgym.Chat(f"openenv:{url}")
        other.reset(seed=7)
        session = OpenEnvSession(url, "text")  # is nobody's to close
        other.task.close()
        session.reset(1)
        with pytest.raises(ServiceError, match=r"no room for a further session .*1/1 sessions"):
            other.reset(seed=8)
        session.close()
        other.reset(seed=8)
        other.task.close()
