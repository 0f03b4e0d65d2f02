"""Acts, masks and observations of both parties in act views."""

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.acts import ActSpeaker
from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.entries import SYSTEM_NAMES, system_numbers
from dialgym.tasks.multiwoz.notation import read_acts
from dialgym.tasks.multiwoz.party_acts import COMPOSITES, composite_names
from dialgym.testing.act_checks import check_act_views
from tests.dialgym.tasks.multiwoz.test_task import play

GOAL = {"hotel": {"info": {"area": "north", "stars": "4"}, "reqt": ["phone"],
                  "book": {"people": "2", "day": "monday", "stay": "3"}}}  # fmt: skip


def test_the_act_views_of_both_parties_agree():
    check_act_views(MultiWOZ(acts="composite"), episodes=1, seed=0)


@pytest.mark.parametrize(("acts", "floor"), [("entries", 0.95), ("composite", 0.9)])
def test_the_rule_system_succeeds_without_values(acts, floor):
    task = MultiWOZ(acts=acts)
    policy = ActSpeaker(task.acts["system"].policy_named("rule"))
    task.speaker_named = lambda party, name: policy if party == "system" else Agenda()
    wins = [play(task, seed)[1].success for seed in range(40)]
    assert np.mean(wins) >= floor


class Agenda:
    def reply(self, task, state, rng):
        return task.nlg.say(task.rules.user.acts(state.dialogue, rng), "user", rng)


def test_the_agenda_chooses_by_act_what_it_says_and_none_of_it_is_masked():
    task, rng = MultiWOZ(), np.random.default_rng(0)
    acts, system = task.acts["user"], task.speaker_named("system", "rule")
    for seed in range(20):
        state = task.initial(np.random.default_rng(seed), None)
        while True:
            said = task.rules.user.acts(state.dialogue, rng)
            chosen = acts.policy_named("agenda").act(task, state, rng)
            assert not (chosen.astype(bool) & ~acts.mask(state)).any()
            text = acts.text(state, chosen, rng)
            assert read_acts(text) == said
            if task.speak(state, text, rng).terminated:
                break
            task.speak(state, system.reply(task, state, rng), rng)


def test_nobody_says_goodbye_before_the_system_has_spoken():
    env = dialgym.aec_env("dialgym/MultiWOZ-act-v0")
    for seed in range(5):
        env.reset(seed=seed)
        names = [name.lower() for name in env.task.acts["user"].names]
        bye = next(place for place, name in enumerate(names) if name.startswith("general-bye"))
        assert env.agent_selection == "user"
        assert not env.action_masks()[bye]
        action = env.action_masks().astype("int8")
        env.step(action)
        assert env.agent_selection == "system"
        env.step(env.action_masks().astype("int8") * 0)
        assert env.action_masks()[bye]


def user_seen(task, state) -> dict[str, float]:
    """Named parts of the user's observation."""
    seen = task.acts["user"].observe(state)
    assert seen.shape == (task.acts["user"].size,)
    return {"turns": seen[-1], "heard": set(np.flatnonzero(seen[:209])), "on": int(seen.sum())}


def test_the_user_observes_its_goal_what_it_heard_and_what_is_open():
    task, rng = MultiWOZ(), np.random.default_rng(0)
    state = task.initial(rng, {"goal": GOAL})
    begun = user_seen(task, state)
    assert begun == {"turns": 0, "heard": set(), "on": begun["on"]}
    task.speak(state, 'Hotel-Inform(Area="north")', rng)
    task.speak(state, 'Hotel-Inform(Name="x",Stars="3")', rng)
    later = user_seen(task, state)
    assert later["turns"] == np.float32(1 / 20)
    assert later["heard"] == set(system_numbers(read_acts('Hotel-Inform(Name="x",Stars="3")')))


def test_user_values_are_those_of_the_goal_or_do_not_matter():
    task, rng = MultiWOZ(), np.random.default_rng(0)
    state = task.initial(rng, {"goal": GOAL})
    acts = task.acts["user"]
    chosen = acts.action(read_acts('Hotel-Inform(Stars="",Type="") Hotel-Request(Phone)'))
    said = set(read_acts(acts.text(state, chosen, rng)))
    assert said == set(read_acts('Hotel-Inform(Stars="4",Type="dontcare") Hotel-Request(Phone)'))
    mask = dict(zip(acts.names, acts.mask(state)))
    assert mask["Hotel-Inform-Stars-1"]
    assert not mask["Hotel-Inform-Type-1"]
    assert not mask["Train-Inform-Day-1"]


def test_composites_are_the_209_and_frequent_combinations():
    names = composite_names()
    assert len(set(names)) == len(names) == COMPOSITES
    assert names[:209] == SYSTEM_NAMES
    task = MultiWOZ(acts="composite")
    acts = task.acts["system"]
    for action in range(COMPOSITES):
        assert acts.nearest(acts.numbers(action)) == action


def test_a_composite_is_masked_where_one_of_its_parts_is():
    task, rng = MultiWOZ(acts="composite"), np.random.default_rng(0)
    state = task.initial(rng, {"domains": ["hotel"]})
    task.speak(state, "Hotel-Inform()", rng)
    acts, allowed = task.acts["system"], task.vectoriser.mask(state.dialogue.belief)
    mask = acts.mask(state)
    for action in range(COMPOSITES):
        assert mask[action] == allowed[list(acts.numbers(action))].all()


def test_ids_of_both_forms_are_registered():
    assert gym.make("dialgym/MultiWOZ-act-v0").action_space == gym.spaces.MultiBinary(209)
    composite = gym.make("dialgym/MultiWOZ-Composite-act-v0")
    assert composite.action_space == gym.spaces.Discrete(COMPOSITES)
    assert composite.observation_space.shape == (340,)


def test_each_party_pays_for_what_it_leaves_out():
    """The system for a request without an answer, the user for asking before it has told."""
    task, rng = MultiWOZ(), np.random.default_rng(0)
    state = task.initial(rng, {"goal": GOAL})
    user, system = task.acts["user"], task.acts["system"]
    ask, area = user.names.index("Hotel-Request-Phone-?"), user.names.index("Hotel-Inform-Area-1")
    stars = user.names.index("Hotel-Inform-Stars-1")

    def chosen(acts, *numbers):
        vector = np.zeros(len(acts.names), np.int8)
        vector[list(numbers)] = 1
        return vector

    assert user.own_reward(state, chosen(user, area)) == 0  # it asks for nothing
    assert user.own_reward(state, chosen(user, ask)) == -2
    assert user.own_reward(state, chosen(user, ask, area)) == -1
    assert user.own_reward(state, chosen(user, ask, area, stars)) == 0
    action = chosen(user, ask, area, stars)
    task.speak(state, user.text(state, action, rng), rng)
    phone = SYSTEM_NAMES.index("Hotel-Inform-Phone-1")
    assert system.own_reward(state, chosen(system)) == -1
    assert system.own_reward(state, chosen(system, phone)) == 0
    composite = MultiWOZ(acts="composite").acts["system"]
    assert composite.own_reward(state, composite.names.index("Hotel-Inform-Phone-1")) == 0
