"""Whole dialogues on acts: ends, rewards, copies, and nonsense from either side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.multiwoz.data import builtin_world
from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from dialgym.tasks.multiwoz.dialogue_state import MultiWOZState
from dialgym.tasks.multiwoz.notation import read_acts
from dialgym.tasks.multiwoz.rewards import COMPONENTS, REWARDS, bounds
from dialgym.tasks.multiwoz.types import Acts, DomainGoal, MultiWOZGoal
from tests.support.city_talk import acts_of_anyone

WORLD = builtin_world()
FIDELITIES = ("correct", "convlab2")
RULES = {
    (fidelity, reward): Rules(WORLD, Settings(fidelity=fidelity, reward=reward))
    for fidelity in FIDELITIES
    for reward in REWARDS
}
any_rules = st.sampled_from(list(RULES.values()))
BYE = read_acts("general-bye()")


def begun(rules: Rules, seed: int) -> tuple[MultiWOZState, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rules.begin(WORLD.draw_goal(rng), rng), rng


def played(rules: Rules, seed: int, turns: int = 100) -> list[tuple[Acts, dict]]:
    """The acts of either party in turn, with the parts of the rewards."""
    state, rng = begun(rules, seed)
    said = []
    for _ in range(turns):
        acts = rules.user.acts(state, rng)
        said.append((acts, dict(rules.user_turn(state, acts, rng).components)))
        if state.ended:
            break
        acts = rules.system.acts(state.belief, rng)
        said.append((acts, dict(rules.system_turn(state, acts, rng).components)))
    return said


# ---------------------------------------------------------------------- ends


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_goodbye_ends_it(fidelity):
    rules = RULES[fidelity, "default"]
    state, rng = begun(rules, 1)
    turn = rules.user_turn(state, BYE, rng)
    assert (turn.terminated, turn.truncated, turn.success) == (True, False, False)
    assert state.ended


def test_the_agenda_leaves_when_all_is_told():
    rules = RULES["correct", "default"]
    said = played(rules, 3)
    assert said[-1][0] == BYE
    assert said[-1][1]["success"] == 80


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_the_agenda_leaves_at_the_limit(fidelity):
    """A system that says nothing is left after its last turn."""
    rules = RULES[fidelity, "default"]
    state, rng = begun(rules, 1)
    for _ in range(rules.settings.turns):
        assert not rules.user_turn(state, rules.user.acts(state, rng), rng).terminated
        rules.system_turn(state, (), rng)
    turn = rules.user_turn(state, rules.user.acts(state, rng), rng)
    assert (turn.terminated, turn.truncated, turn.success) == (True, False, False)
    assert turn.components["success"] == -40


@given(any_rules, st.lists(acts_of_anyone(), min_size=1, max_size=3), st.integers(0, 99))
def test_a_user_that_never_leaves_is_cut_short(rules, utterances, seed):
    state, rng = begun(rules, seed)
    endless = [tuple([act for act in acts if act.intent != "bye"]) for acts in utterances]
    for number in range(rules.settings.turns):
        turn = rules.user_turn(state, endless[number % len(endless)], rng)
        assert (turn.terminated, turn.truncated) == (False, False)
        rules.system_turn(state, rules.system.acts(state.belief, rng), rng)
    turn = rules.user_turn(state, endless[0], rng)
    assert (turn.terminated, turn.truncated) == (False, True)
    assert turn.success is not None


def test_a_shorter_limit():
    rules = Rules(WORLD, Settings(turns=2))
    assert max(len(played(rules, seed)) for seed in range(20)) == 5


# ---------------------------------------------------------------------- rewards


def test_default_reward():
    """-1 a turn, +5 once for each domain, +80 in the end."""
    rules = RULES["correct", "default"]
    for seed in range(50):
        state, _ = begun(rules, seed)
        parts = [parts for acts, parts in played(rules, seed) if parts]
        turns = len(parts)
        assert sum(part["turn"] for part in parts) == -turns
        assert sum(part["domain"] for part in parts) == 5 * len(state.goal.domains)
        assert [part["success"] for part in parts] == [0] * (turns - 1) + [80]


def test_reward_of_the_original_pays_again_and_again():
    """A domain that is finished pays +5 at each turn that is spent in it, success +40."""
    goal = MultiWOZGoal(
        {"police": DomainGoal(requests=("phone",)), "hospital": DomainGoal(requests=("phone",))}
    )
    rules = RULES["convlab2", "convlab2"]
    rng = np.random.default_rng(0)
    state = rules.begin(goal, rng)
    rules.user_turn(state, read_acts("Police-Request(Phone)"), rng)
    totals = []
    for _ in range(3):
        rules.system_turn(state, read_acts('Police-Inform(Phone="01223000003")'), rng)
        turn = rules.user_turn(state, read_acts("Police-Request(Phone)"), rng)
        totals.append(sum(turn.components.values()))
    assert totals == [5, 5, 5]


@pytest.mark.parametrize("reward", REWARDS)
def test_returns_lie_within_their_bounds(reward):
    rules = RULES["correct", reward]
    low, high = bounds(reward, rules.settings.turns)
    for seed in range(50):
        total = sum(sum(parts.values()) for _, parts in played(rules, seed))
        assert low <= total <= high


def test_the_first_words_are_not_the_systems_doing():
    rules = RULES["correct", "default"]
    said = played(rules, 0)
    assert said[0][1] == {}
    assert tuple(said[2][1]) == COMPONENTS


# ---------------------------------------------------------------------- copies and seeds


@given(any_rules, st.integers(0, 99), st.integers(0, 4), acts_of_anyone(), acts_of_anyone())
def test_copies_go_their_own_way(rules, seed, turns, told, said):
    """Changes of a copy leave its original as it was."""
    state, rng = begun(rules, seed)
    for _ in range(turns):
        rules.user_turn(state, rules.user.acts(state, rng), rng)
        if state.ended:
            break
        rules.system_turn(state, rules.system.acts(state.belief, rng), rng)
    before, copy = state.copy(), state.copy()
    assert copy == state
    rules.user_turn(copy, said, rng)
    rules.system_turn(copy, told, rng)
    assert state == before


def test_choosing_acts_changes_nothing():
    rules = RULES["correct", "default"]
    state, rng = begun(rules, 5)
    rules.user_turn(state, rules.user.acts(state, rng), rng)
    before = state.copy()
    rules.system.acts(state.belief, rng)
    rules.user.acts(state, rng)
    assert state == before


# ---------------------------------------------------------------------- nonsense


MAYBE = st.none() | acts_of_anyone()
"""Acts of a party; None for those of the rules' own."""


@given(any_rules, st.integers(0, 99), st.lists(st.tuples(MAYBE, MAYBE), max_size=12))
def test_anyone_can_be_talked_to(rules, seed, exchanges):
    """Unknown slots and domains, contradictions, silence: the other side goes on, or leaves."""
    state, rng = begun(rules, seed)
    for user, system in exchanges:
        said = rules.user.acts(state, rng) if user is None else user
        assert said or user is not None
        rules.user_turn(state, said, rng)
        rules.metrics(state)
        if state.ended:
            return
        said = rules.system.acts(state.belief, rng) if system is None else system
        assert said or system is not None
        rules.system_turn(state, said, rng)
    assert state.turns == len(exchanges)


def test_silence_on_both_sides():
    rules = RULES["correct", "default"]
    state, rng = begun(rules, 0)
    rules.user_turn(state, (), rng)
    assert rules.system.acts(state.belief, rng) == read_acts("general-reqmore()")
    rules.system_turn(state, (), rng)
    assert not state.ended


def test_a_name_that_is_none():
    for setting in ({"reward": "fair"}, {"fidelity": "pydial"}, {"fidelity": "same_as+greet"}):
        with pytest.raises(ValueError, match="MultiWOZ"):
            Rules(WORLD, Settings(**setting))
