"""The same seed and texts give the same dialogue through every door."""

from dataclasses import replace

import pytest

from dialgym.io.objects import load
from dialgym.testing.agreement import FAMILIES, SEEDS, by_chat, case_of, check_agreement
from tests.doors.doors import DOORS

USERS = [family for family in FAMILIES if family.endswith(" user")]
PAIRS = [(d, f) for d, door in DOORS.items() for f in FAMILIES if door.user or f not in USERS]


@pytest.mark.parametrize("seeds", [SEEDS // 10, pytest.param(SEEDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("door", "family"), PAIRS)
def test_every_door_plays_the_same_dialogue(door, family, seeds):
    own = DOORS[door]
    pytest.importorskip(own.needs, reason=f"the door {door} needs {own.needs}")
    for seed in range(seeds):
        check_agreement(load(own.player), family, seed, own.lacks)


@pytest.mark.parametrize("seeds", [2 * SEEDS // 5, pytest.param(SEEDS, marks=pytest.mark.slow)])
def test_the_dialogues_are_not_all_alike(seeds):
    """Of each family: experts succeed, and random texts are said too."""
    for family in FAMILIES:
        cases = [case_of(family, seed) for seed in range(seeds)]
        assert len({tuple(texts) for _, _, texts, _ in cases}) > seeds // 4
        assert any(record.success for *_, record in cases) or family in NEVER_WON
        assert all(text == text.strip() != "" for _, _, texts, _ in cases for text in texts)


NEVER_WON = ("DailyDialog-Conversation", "Comments", "Logged")


def drops_a_reward(record):
    return replace(record, rewards=record.rewards[:-1])


def loses_space_within(record):
    return replace(record, messages=tuple((r, c.replace("  ", " ")) for r, c in record.messages))


def takes_context_for_said(record):
    return replace(record, said=(2, *record.said))


def ends_otherwise(record):
    return replace(record, truncated=not record.truncated)


def cuts_the_closing_words(record):
    return replace(record, closing="")


def forgets_components(record):
    return replace(record, components=None)


FAULTS = {
    "rewards": drops_a_reward,
    "messages": loses_space_within,
    "said": takes_context_for_said,
    "truncated": ends_otherwise,
    "components": forgets_components,
    "closing": cuts_the_closing_words,
}


@pytest.mark.parametrize("part", FAULTS)
def test_faulty_doors_are_found(part):
    def faulty(*dialogue):
        return FAULTS[part](by_chat(*dialogue))

    assert "  " in "".join(case_of("SlotFilling", 3)[2])
    check_agreement(by_chat, "SlotFilling", 3)
    with pytest.raises(AssertionError, match=f"seed 3: {part} is"):
        check_agreement(faulty, "SlotFilling", 3)


def test_a_door_that_loses_the_seed_is_found():
    def shifted(env_id, settings, seed, texts):
        return by_chat(env_id, settings, seed + 1, texts[:1])

    with pytest.raises(AssertionError, match="by the rules"):
        check_agreement(shifted, "TwentyQuestions-16", 0)


def test_what_a_door_lacks_must_be_none():
    check_agreement(lambda *d: forgets_components(by_chat(*d)), "Wordle-20", 0, ["components"])
    with pytest.raises(AssertionError, match="components"):
        check_agreement(by_chat, "Wordle-20", 0, ["components"])
