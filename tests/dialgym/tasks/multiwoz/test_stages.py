"""Stages of your own, and noise."""

import numpy as np
import pytest

from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.noise import NoisyChannel
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.types import ASKED, DialogueAct
from tests.dialgym.tasks.multiwoz.test_task import play


class Forgetful:
    """A tracker that believes only what the user has just said; the README's example."""

    def update(self, belief, acts):
        belief.user_acts = acts
        belief.constraints = {}
        for intent, domain, slot, value in acts:
            if intent == "Inform" and slot == "Area":
                belief.constraints[domain.lower()] = {"area": value}

    def heard(self, belief, acts):
        belief.system_acts = acts


class Shouting:
    """Notation in capitals, both ways."""

    def __init__(self, world):
        self.world = world

    def say(self, acts, party, rng):
        return print_acts(acts).upper()

    def understand(self, text, party):
        return read_acts(text.replace("-INFORM", "-Inform").replace("HOTEL", "Hotel"))


def test_a_tracker_of_your_own_is_what_the_system_believes():
    task, rng = MultiWOZ(tracker=Forgetful()), np.random.default_rng(0)
    state = task.initial(rng, {"domains": ["hotel"]})
    task.speak(state, 'Hotel-Inform(Area="north")', rng)
    assert state.dialogue.belief.constraints == {"hotel": {"area": "north"}}
    task.speak(state, "general-reqmore()", rng)
    task.speak(state, 'Hotel-Inform(Stars="4")', rng)
    assert state.dialogue.belief.constraints == {}


def test_a_worse_tracker_serves_worse():
    own = MultiWOZ(tracker="tests.dialgym.tasks.multiwoz.test_stages:Forgetful")
    wins = [np.mean([play(task, s)[1].success for s in range(30)]) for task in (own, MultiWOZ())]
    assert wins[0] + 0.3 < wins[1]


def test_nlu_and_nlg_of_your_own_speak_and_understand():
    path = f"{__name__}:Shouting"
    task, rng = MultiWOZ(nlu=path, nlg=path), np.random.default_rng(0)
    state = task.initial(rng, {"goal": {"hotel": {"info": {"area": "north"}, "reqt": ["phone"]}}})
    text = task.speaker_named("user", "agenda").reply(task, state, rng)
    assert text.startswith("HOTEL-INFORM(")
    task.speak(state, 'HOTEL-INFORM(Area="north")', rng)
    assert state.dialogue.belief.constraints["hotel"] == {"area": "north"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *[({stage: object()}, f"{stage} of MultiWOZ: expected an object with")
          for stage in ("nlu", "tracker", "nlg")],
        *[({stage: f"{__name__}:Missing"}, "has no 'Missing'")
          for stage in ("nlu", "tracker", "nlg")],
        ({"error_rate": 2}, "error_rate"),
    ],
)  # fmt: skip
def test_bad_settings_are_one_clear_error(settings, message):
    with pytest.raises(ValueError, match=message):
        MultiWOZ(**settings)


def acts_of_users(count: int) -> list[DialogueAct]:
    rng, task, acts = np.random.default_rng(0), MultiWOZ(), []
    while len(acts) < count:
        state = play(task, int(rng.integers(1 << 30)))[2]
        for line in state.heard_by_user:
            acts += read_acts(line.text) if line.speaker == "user" else ()
    return acts


def test_acts_are_misheard_as_often_as_asked_and_in_the_channels_shares():
    world, rng = load_world("built-in"), np.random.default_rng(1)
    said = [a for a in acts_of_users(2000) if a.intent == "Inform" and a.slot in ("Area", "Food")]
    channel = NoisyChannel(world, 0.3)
    heard = [channel.hear((act,), rng) for act in said for _ in range(10)]
    wrong = [(act, got) for act, got in zip([a for a in said for _ in range(10)], heard)
             if got != (act,)]  # fmt: skip
    assert abs(len(wrong) / len(heard) - 0.3) < 0.03
    slots = np.mean([bool(got) and got[0].slot != act.slot for act, got in wrong])
    values = np.mean([bool(got) and got[0].slot == act.slot for act, got in wrong])
    assert abs(slots - 0.3) < 0.05
    assert abs(values - 0.5) < 0.05


def test_goodbyes_are_always_heard_and_requests_stay_requests():
    channel, rng = NoisyChannel(load_world("built-in"), 1.0), np.random.default_rng(0)
    bye = (DialogueAct("bye", "general"),)
    assert channel.hear(bye, rng) == bye
    for _ in range(20):
        for act in channel.hear((DialogueAct("Request", "Hotel", "Phone", ASKED),), rng):
            assert (act.intent, act.value) == ("Request", ASKED)
            assert act.slot != "Phone"
