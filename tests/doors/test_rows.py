"""Rows of training data, by which all doors begin their dialogues."""

import json

import pytest

import dialgym
from dialgym.bridges import rows


def test_a_row_has_all_that_its_dialogue_needs():
    (row,) = json.loads(json.dumps(rows.rows_of("Wordle-20-v0", 1, seed=7, turns=3)))
    chat = rows.chat_of(row)
    assert rows.begin(chat, row) == row["prompt"] == dialgym.Chat("Wordle-20-v0", turns=3).reset(7)
    assert [chat.step("wrong").over for _ in range(3)] == [False, False, True]


def test_chats_of_equal_rows_share_nothing_that_changes():
    (row,) = rows.rows_of("Wordle-20-v0", 1)
    chats = [rows.chat_of(row) for _ in range(2)]
    for chat in chats:
        rows.begin(chat, row)
    chats[0].step("wrong")
    assert [len(chat.messages) for chat in chats] == [4, 2]


def test_a_row_by_hand_may_have_a_mapping_of_settings_and_options():
    row = {"env_id": "Wordle-20-v0", "settings": {"turns": 2}, "options": {"word": "quiet"}}
    chat = rows.chat_of(row)
    rows.begin(chat, row)
    assert (chat.task.turns, chat.step("quiet").reward) == (2, 0.0)


def test_what_is_no_row_is_refused():
    with pytest.raises(ValueError, match=r"'env_id' among its columns; got \['prompt'\]"):
        rows.chat_of({"prompt": []})
    with pytest.raises(ValueError, match="Did you mean"):
        rows.chat_of({"env_id": "Wordle-21-v0"})
    with pytest.raises(ValueError, match=r"plain values.*Register an id"):
        rows.rows_of("Wordle-v0", 1, answers={"crane"})


def test_a_row_of_a_task_has_the_settings_that_it_was_made_with():
    task = dialgym.Chat("Wordle-20-v0", turns=3).task
    (row,) = json.loads(json.dumps(rows.rows_of(task, 1, reward_scale=2.0)))
    chat = rows.chat_of(row)
    assert rows.begin(chat, row) == row["prompt"]
    assert [chat.step("wrong").reward for _ in range(3)] == [-2.0] * 3


@pytest.mark.parametrize("count", [0, -1, "a"])
def test_a_count_that_is_none(count):
    with pytest.raises(ValueError, match=r"count of .* must be a whole number from 1"):
        rows.rows_of("Wordle-20-v0", count)
