"""The union of a party's constraints has all that any state allows."""

import numpy as np
import pytest

from dialgym.language import allows
from dialgym.registry import entry_of, make_task
from dialgym.testing.scripts import allowed_text
from dialgym.views.dialogue import Dialogue
from dialgym.views.speakers import find_speaker
from tests.conformance.ids import in_full

EPISODES = 2


@pytest.mark.parametrize("env_id", in_full("utterance"))
def test_what_a_state_allows_is_in_the_union(env_id):
    task = make_task(entry_of(env_id), {})
    union = task.union_constraint("system")
    assert union is not None
    if task.static_constraint("system") is not None:
        assert union == task.static_constraint("system")
        return
    dialogue = Dialogue(task, "system", find_speaker(task, "system", None))
    for seed in range(EPISODES):
        rng, words = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        over = dialogue.start(rng, None).over
        while not over:
            constraint = task.constraint(dialogue.state, "system")
            texts = [allowed_text(task, "system", constraint, words) for _ in range(5)]
            assert all(allows(union, text) for text in texts)
            over = dialogue.say(texts[0], rng).over
