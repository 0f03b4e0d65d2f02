"""The conformance kit finds each planted defect, and none where there is none."""

import json

import gymnasium as gym
import numpy as np
import pytest

from dialgym.registry import entry_of
from dialgym.testing import check_environment, gymnasium_environment, utterance_environment
from dialgym.testing.conformance import CHECKS, CheckSettings
from dialgym.testing.sessions import GymnasiumSession, TextEnvironment
from tests.support.faulty_environments import DEFECTS, MORE_DEFECTS, GuessWord, environment

GAP = CheckSettings(episodes=40, gap=0.5)
FAMILIES = {
    "Wordle-20-v0": {},
    "TwentyQuestions-16-v0": {},
    "VisualDialogue-100-v0": {},
    "SlotFilling-v0": {"language": "english"},
    "MultiWOZ-v0": {"language": "words"},
    "DailyDialog-Conversation-v0": {},
    "Comments-v0": {},
    "Logged-v0": {},
}


def family(env_id):
    return lambda: utterance_environment(entry_of(env_id), **FAMILIES[env_id])


CLEAN = {
    **{env_id: family(env_id) for env_id in FAMILIES},
    "word game": environment,
    "word game with masks": lambda: environment(masks=True),
}
CLEAN_SETTINGS = dict.fromkeys(FAMILIES, CheckSettings(episodes=20))


def verdicts(report):
    return {result.check: result.verdict for result in report.results}


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_of_the_field_is_found(defect):
    report = check_environment(environment(defect), GAP)
    assert DEFECTS[defect] in [fault.check for fault in report.faults], report.results


@pytest.mark.parametrize("defect", MORE_DEFECTS)
def test_each_further_defect_fails_its_checks_alone(defect):
    report = check_environment(environment(defect), GAP)
    assert {fault.check for fault in report.faults} == MORE_DEFECTS[defect], report.results


@pytest.mark.parametrize("name", CLEAN)
def test_no_false_alarm_in_ten_clean_environments(name):
    """Families of ours, and the word game; its gap of 0.5 is one that 40 dialogues show."""
    report = check_environment(CLEAN[name](), CLEAN_SETTINGS.get(name, GAP))
    assert not report.faults
    assert [*verdicts(report)] == ["the seed holds", *CHECKS]


def test_the_sound_game_passes_what_it_has_a_part_for():
    for masks, expected in ((True, []), (False, ["masks leave something"])):
        found = verdicts(check_environment(environment(masks=masks), GAP))
        assert [check for check, verdict in found.items() if verdict != "pass"] == expected


def test_every_defect_has_a_check_and_every_check_a_defect():
    checks = {"the seed holds", *CHECKS}
    assert set().union(DEFECTS.values(), *MORE_DEFECTS.values()) == checks
    assert len({*DEFECTS.values()}) == len(DEFECTS) == 7


def test_a_report_says_where_it_happened():
    report = check_environment(environment("reward beyond bounds"), GAP)
    (fault,) = report.faults
    assert fault.evidence.endswith("gave 3; declared are -1 to 1")
    assert json.loads(report.as_json())["checks"][5] == {
        "check": fault.check,
        "verdict": "fail",
        "evidence": fault.evidence,
    }


def test_an_error_in_the_environment_is_a_fault():
    class Falls(GuessWord):
        def step(self, action):
            raise RuntimeError("no more")

    report = check_environment(gymnasium_environment(Falls), GAP)
    assert report.faults[0].evidence == "raised RuntimeError: no more"


def test_bounds_can_be_given():
    report = check_environment(environment(), CheckSettings(episodes=5, rewards=(0.0, 1.0)))
    assert verdicts(report)["rewards are within bounds"] == "fail"


def test_an_option_that_shows_up_is_a_leak():
    class Chosen(GuessWord):
        leak = ""

        def reset(self, *, seed=None, options=None):
            _, info = super().reset(seed=seed)
            self.secret = (options or {}).get("word", self.secret)
            self.history = f"Guess my word.{self.leak and self.secret}"
            return self.history, info

    def checked(leak):
        kind = type("Chosen", (Chosen,), {"leak": leak})
        words = [{"word": f"{a}{b}xyz"} for a in "abcde" for b in "uvw"]
        plain = environment()
        game = TextEnvironment(
            "Chosen", lambda: GymnasiumSession(kind()), plain.sample, secrets=words
        )
        return check_environment(game, CheckSettings(episodes=5)).faults

    assert not checked("")
    (fault,) = checked(" ")
    assert "option word stands in observations of" in fault.evidence


def test_an_environment_of_numbers_is_refused():
    with pytest.raises(ValueError, match=r"expected an action space of strings"):
        gymnasium_environment("CartPole-v1")
    with pytest.raises(ValueError, match="Gymnasium knows no environment 'No-v0'"):
        gymnasium_environment("No-v0")


def test_observations_that_are_no_strings_are_told():
    class Pictures(GuessWord):
        def reset(self, *, seed=None, options=None):
            return np.zeros(3), {}

    report = check_environment(gymnasium_environment(Pictures), GAP)
    assert "expected observations that are strings, got ndarray" in report.faults[0].evidence


def test_an_id_of_gymnasium_is_checked():
    gym.register("own/GuessWord-v0", entry_point=GuessWord)
    try:
        report = check_environment(gymnasium_environment("own/GuessWord-v0"), GAP)
    finally:
        del gym.registry["own/GuessWord-v0"]
    assert not report.faults
