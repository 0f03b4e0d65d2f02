"""Dialogues of TRL's door for tools by themselves: what they pay, and what no model pays for."""

import pytest
from gymnasium.error import ResetNeeded

from dialgym.bridges import trl_tools
from dialgym.bridges.rows import rows_of
from dialgym.errors import ServiceError
from tests.doors.trl_tools_player import asking

ID = "Wordle-20-v0"


def begun(env_id, seed=0, **settings):
    """A dialogue of a row."""
    dialogue = trl_tools.environment(env_id, **settings)()
    for name in ("simulator", "unfinished"):
        settings.pop(name, None)
    dialogue.reset(**asking(dialogue, rows_of(env_id, 1, seed=seed, **settings)[0]))
    return dialogue


@pytest.mark.parametrize("more", [{}, {"reward_scale": 10.0}, {"reward_shift": -1.0}])
def test_to_leave_pays_as_little_as_the_worst_that_can_be_played(more):
    left = begun(ID, **more).get_reward()
    lost = begun(ID, **more)
    while trl_tools.OVER not in lost.guess("wrong"):
        pass
    assert left == lost.get_reward()


def test_where_rewards_are_added_that_have_no_bounds_the_lowest_is_asked_for():
    with pytest.raises(ValueError, match="no lowest bound"):
        trl_tools.environment(ID, potential={"value": 1.0})
    assert begun(ID, potential={"value": 1.0}, unfinished=-9.0).get_reward() == -9.0


class Fails:
    """A user that cannot be reached."""

    def reply(self, task, state, rng):
        raise ServiceError("down")


def test_a_simulator_that_fails_is_no_reward_of_the_model():
    dialogue = begun("TwentyQuestions-16-v0", simulator=Fails())
    for _ in range(2):
        with pytest.raises((ServiceError, ResetNeeded)):
            dialogue.ask("is it alive?")  # which TRL tells the model
    with pytest.raises(ServiceError, match="no answer"):
        dialogue.get_reward()
