"""The same seed and texts give the same dialogue through every door."""

from dataclasses import replace

import pytest

from dialgym.testing.agreement import (
    PLAYERS,
    by_chat,
    by_tokens,
    check_agreement,
    script_of,
)

METEOR = {"rewards": {"meteor": 1.0}}
FAMILIES = {
    "Wordle-20": ("optimal", {}),
    "TwentyQuestions-16": ("greedy", {}),
    "VisualDialogue-100": ("greedy", {}),
    "SlotFilling": ("handcrafted", {"language": "english"}),
    "MultiWOZ": ("rule", {"language": "words"}),
    "DailyDialog-Conversation": ("reference", METEOR),
    "Comments": ("logged", {}),
    "Logged": ("reference", {}),
    "Wordle-20 user": ("host", {"learner": "user"}),
    "TwentyQuestions-16 user": ("answerer", {"learner": "user"}),
    "SlotFilling user": ("agenda", {"learner": "user", "language": "english"}),
}
"""By family and learner, an expert and settings."""
SEEDS = 20


def id_of(family):
    return f"{family.removesuffix(' user')}-utterance-v0"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_door_plays_the_same_dialogue(family):
    support = pytest.importorskip("tests.support.chat_templates", reason="needs transformers")
    doors = {**PLAYERS, "tokens": by_tokens(support.tokenizer_with("chatml"))}
    expert, settings = FAMILIES[family]
    for seed in range(SEEDS):
        texts = script_of(id_of(family), settings, seed, expert)
        for player in doors.values():
            check_agreement(player, id_of(family), settings, seed, texts)


def drops_a_reward(record):
    return replace(record, rewards=record.rewards[:-1])


def loses_space_within(record):
    return replace(record, messages=tuple((r, c.replace("  ", " ")) for r, c in record.messages))


def takes_context_for_said(record):
    return replace(record, said=(2, *record.said))


def ends_otherwise(record):
    return replace(record, truncated=not record.truncated)


FAULTS = {
    "rewards": drops_a_reward,
    "messages": loses_space_within,
    "said": takes_context_for_said,
    "truncated": ends_otherwise,
}


@pytest.mark.parametrize("part", FAULTS)
def test_faulty_doors_are_found(part):
    env_id, texts = "TwentyQuestions-16-utterance-v0", ["is  it alive?", "is it a cat?"] * 6

    def faulty(*dialogue):
        return FAULTS[part](by_chat(*dialogue))

    check_agreement(by_chat, env_id, {}, 2, texts[:2])
    with pytest.raises(AssertionError, match=f"seed 2: {part} is"):
        check_agreement(faulty, env_id, {}, 2, texts[:2])


def test_a_door_that_loses_the_seed_is_found():
    def shifted(env_id, settings, seed, texts):
        return by_chat(env_id, settings, seed + 1, texts)

    texts = script_of("Wordle-20-utterance-v0", {}, 0, "optimal")
    with pytest.raises(AssertionError, match="by the rules"):
        check_agreement(shifted, "Wordle-20-utterance-v0", {}, 0, texts[:1])
