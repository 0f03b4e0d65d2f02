"""Beliefs and masks beside those of the original, on dialogues that it has held.

The traces hold PyDial's own acts and lists of hypotheses, and for each turn the belief vector and
the mask that it made of them.
"""

import gzip
import json
import os

import numpy as np
import pytest

from dialgym.language.acts import parse_act
from dialgym.tasks.slot_filling import SlotFilling

HDC, RANDOM = "trace-CamRestaurants-3-hdc", "trace-CamRestaurants-6-random"


@pytest.fixture(scope="module")
def traces(data):
    """The dialogues of a file, and the domain that they were held in."""
    domain = data / "pydial" / "CamRestaurants"
    task = SlotFilling(os.fspath(domain), fidelity="pydial", masks=True)

    def read(name):
        path = data / "pydial_traces" / f"{name}.jsonl.gz"
        if not path.exists():
            pytest.skip(f"{path} is missing: the replay of the original's dialogues is not made")
        with gzip.open(path, "rt") as lines:
            return task, [json.loads(line) for line in lines]

    return read


def replayed(task, dialogue):
    """The belief vector and the mask of each turn of a dialogue."""
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    chosen = dialogue["summary"] or [None] * len(dialogue["sys"])
    for heard, text, name in zip(dialogue["hyps"], dialogue["sys"], chosen):
        hypotheses = [(parse_act(act), p) for act, p in heard]
        task.tracker.update(state.belief, state.system_act, hypotheses)
        state.summary = task.summariser.summarise(state.belief)
        task.conclude(state, hypotheses[0][0])
        vector = task.summariser.vector(state.belief, state.summary)
        yield vector, task.summary_acts.mask(state.belief, state.summary)
        if name is not None:
            task.acts["system"].note(state, task.summary_acts.number[name], text)
        state.user_speaks = False
        task.speak(state, text, rng)


def differing(task, dialogues):
    """Turns, and those of which the vector and the mask are not the original's."""
    counts = np.zeros(3, int)
    for dialogue in dialogues:
        for turn, (vector, mask) in enumerate(replayed(task, dialogue)):
            close = np.allclose(vector, dialogue["vec"][turn], atol=1e-5)
            masks = dialogue["mask"]
            same = not masks or (mask == np.array(masks[turn], bool)).all()
            counts += (1, not close, not same)
    return counts.tolist()


def test_the_handcrafted_policys_beliefs(traces):
    task, dialogues = traces(HDC)
    assert differing(task, dialogues) == [1292, 0, 0]


def test_a_random_policys_beliefs_and_masks(traces):
    """The first one of the process has yet to offer a row, which the others take as done."""
    task, (first, *dialogues) = traces(RANDOM)
    turns = len(first["sys"])
    assert differing(task, dialogues) == [3226 - turns, 0, 0]
    assert differing(task, [first])[2] == 0
