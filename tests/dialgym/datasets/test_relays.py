"""Dialogues in which one policy takes over from another."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset
from dialgym.io.objects import load
from dialgym.registry import entries, entry_of
from dialgym.tasks.generators import Leg, Relay, by_halves

KINDS = {"good-poor", "poor-good"}
SMALL = (
    "Wordle-Alike-v0",
    "TwentyQuestions-8-v0",
    "TwentyQuestions-8-act-v0",
    "VisualDialogue-100-v0",
    "SlotFilling-act-v0",
    "SlotFilling-v0",
    "Maze-v0",
    "TextNav-act-v0",
    "Endgames-Mate2-v0",
    "Bargain-act-v0",
    "CarDealer-act-v0",
)
SHORT = {"CarDealer-act-v0": {"turns": 4}}
"""The best that can be done in more turns is long sought."""


class Always:
    """Says one word at every turn."""

    def __init__(self, word: str) -> None:
        self.word = word

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        return self.word


def miner() -> Always:
    return Always("miner")


def slant() -> Always:
    return Always("slant")


def said(row: dict[str, Any]) -> list[str]:
    return [turn["text"] for turn in row["turns"] if turn["party"] == "system"]


def halves(turns: int, again: float = 0.0, episodes: int = 40) -> Dataset:
    relay = by_halves(slant, miner)(turns, again)
    return dialgym.collect("Wordle-Alike-v0", relay, episodes)


def test_small_environments_of_all_tasks_with_halves_are_tested_here():
    tasks = {entry.row.task for entry in entries().values()}
    halved = {task for task in tasks if "halves" in load(task).generators}
    assert {entry_of(name).row.task for name in SMALL} == halved


@pytest.mark.parametrize("env_id", SMALL)
def test_both_kinds_are_played_by_every_task(env_id: str):
    made = SHORT.get(env_id)
    dataset = dialgym.collect(env_id, "halves", 10, env_kwargs=made)
    assert set(dataset["kind"]) == KINDS
    assert len(dataset) == 10
    assert dataset.table.equals(dialgym.collect(env_id, "halves", 10, env_kwargs=made).table)


@pytest.mark.parametrize("turns", [1, 2])
def test_no_dialogue_is_played_well_on_both_sides(turns: int):
    for row in halves(turns):
        first, then = ("slant", "miner") if row["kind"] == "good-poor" else ("miner", "slant")
        words = said(row)
        assert set(words[:turns]) == {first}
        assert set(words[turns:]) <= {then}


def test_the_poor_player_repeats_what_was_said_last():
    dataset = halves(1, again=1.0)
    stuck = [said(row) for row in dataset if row["kind"] == "good-poor"]
    assert {word for words in stuck for word in words} == {"slant"}
    assert all(said(row)[0] == "miner" for row in dataset if row["kind"] == "poor-good")


def test_seeds_and_words_replay_a_dialogue():
    env = gym.make("dialgym/Wordle-20-utterance-v0")
    for row in dialgym.collect("Wordle-20-v0", "halves", 10, seed=5):
        env.reset(seed=row["seed"])
        *_, last = (env.step(text) for text in said(row))
        assert last[0] == "".join(f"{turn['party']}: {turn['text']}\n" for turn in row["turns"])


def test_an_act_is_said_again_where_its_mask_allows_that():
    settings = {"turns": 2, "again": 1.0}
    dataset = dialgym.collect("SlotFilling-act-v0", "halves", 20, policy_kwargs=settings)
    data, kinds, repeated = dataset.acts(), dataset["kind"], 0
    for i in np.flatnonzero(kinds == "good-poor"):
        played = data.dialogue(int(i))
        for t in range(2, len(played.actions)):
            if played.action_masks[t][played.actions[t - 1]]:
                assert played.actions[t] == played.actions[t - 1]
                repeated += 1
    assert repeated > 10


def test_a_relay_may_have_any_legs():
    relay = Relay({"thirds": (Leg(slant(), 1), Leg(miner(), 2), Leg(slant()))})
    rows = dialgym.collect("Wordle-Alike-v0", relay, 20)
    words = [said(row) for row in rows if len(said(row)) == 6]
    assert words
    assert all(each == ["slant", "miner", "miner", *["slant"] * 3] for each in words)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turns": 0}, "turns of halves must be a whole number from 1; got 0"),
        ({"again": 1.5}, "again of halves must be from 0 to 1; got 1.5"),
    ],
)
def test_impossible_halves(settings: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        dialgym.collect("Wordle-Alike-v0", "halves", 1, policy_kwargs=settings)
