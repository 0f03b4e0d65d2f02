"""Each defect that reaches users of text environments is found by every way in."""

from contextlib import contextmanager

import gymnasium as gym
import pytest

from dialgym.bridges.gymnasium import GymnasiumTask
from dialgym.testing import CheckSettings, check_environment
from dialgym.testing.conformance import CHECKS
from tests.support.faulty_environments import DEFECTS, GuessWord

SETTINGS = CheckSettings(
    episodes=16, gap=0.8, rewards=GuessWord.reward_range, texts=("apple", "queen")
)
"""Of 16 dialogues the sound game shows a gap of 0.8, and the noisy one does not."""


@contextmanager
def by_gymnasium(defect):
    gym.register("own/Planted-v0", entry_point=GuessWord, kwargs={"defect": defect})
    try:
        yield GymnasiumTask("own/Planted-v0").environment
    finally:
        del gym.registry["own/Planted-v0"]


@contextmanager
def by_textarena(defect):
    pytest.importorskip("textarena", reason="needs the extra `textarena`")
    from dialgym.bridges.textarena import TextArenaTask
    from tests.support.textarena_words import guess_word_game

    with guess_word_game(defect) as name:
        yield TextArenaTask(name).environment


@contextmanager
def by_openenv(defect):
    pytest.importorskip("openenv", reason="needs the extra `openenv`")
    from dialgym.bridges.openenv_client import OpenEnvTask
    from tests.support.app_server import app_server
    from tests.support.openenv_words import guess_word_app

    with app_server(guess_word_app(defect)) as url:
        yield OpenEnvTask(url).environment


@contextmanager
def by_verifiers(defect):
    pytest.importorskip("verifiers.v1", reason="needs the extra `verifiers`")
    from dialgym.bridges.verifiers_client import VerifiersTask
    from tests.support.verifiers_words import guess_word_package

    with guess_word_package(defect) as name:
        yield VerifiersTask(name.removeprefix("verifiers:")).environment


WAYS = {
    "gymnasium": by_gymnasium,
    "textarena": by_textarena,
    "openenv": by_openenv,
    "verifiers": by_verifiers,
}
IMPOSSIBLE = {
    ("verifiers", "mask forbids all"): "a request to the model of an agent has messages, no mask",
}
"""Ways and defects that a library has no place for."""


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("way", WAYS)
def test_each_defect_is_found_by_each_way_in(way, defect):
    if reason := IMPOSSIBLE.get((way, defect)):
        pytest.skip(reason)
    with WAYS[way](defect) as environment:
        report = check_environment(environment, SETTINGS)
    assert DEFECTS[defect] in [fault.check for fault in report.faults], report.results


@pytest.mark.parametrize("way", WAYS)
def test_the_sound_game_raises_no_alarm_by_any_way_in(way):
    with WAYS[way]("") as environment:
        report = check_environment(environment, SETTINGS)
    assert not report.faults
    assert {each.check for each in report.results} == {"the seed holds", *CHECKS}
