"""The task held to its facts, and all its views to each other, in settings of all kinds.

The default ones are those of `tests.conformance`.
"""

import pytest

from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.testing import check_batch, check_task, check_views

SMALL = {"name": "scenes", "scenes": 60}
SETTINGS = [
    {"mode": "agent_stops", "penalty": "conservative", "cost": 0.01},
    {"mode": "10_stop", "rounds": 3, "constraint": "questions"},
    {"mode": "agent_stops", "constraint": "questions", "penalty": "soft", "reward": "ilql"},
    {"reward": "ilql", "penalty": "hard", "cutoff": (1.0, 0.5)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_keeps_to_its_facts(settings):
    check_task(VisualDialogue(SMALL, **settings), episodes=5)


@pytest.mark.parametrize("settings", SETTINGS[:1], ids=str)
def test_its_views_are_the_same_dialogues(settings):
    check_views(VisualDialogue(SMALL, **settings), episodes=20)


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_a_batch_is_as_many_dialogues(settings):
    check_batch(VisualDialogue(SMALL, **settings), num_envs=4, steps=80, features=True)
