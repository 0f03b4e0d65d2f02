"""Figures of doors: the committed ones meet the bars, and the command measures what it says."""

import pytest

from benchmarks import doors
from benchmarks.tables.records import read_record
from tests.doors.doors import DOORS


def test_committed_figures_meet_the_bars():
    figures = read_record(doors.NAME)["figures"]
    assert set(figures["chats"]) == set(doors.ALONE)
    costs = {name: each["view"] / each["chat"] for name, each in figures["chats"].items()}
    assert {name: cost for name, cost in costs.items() if cost > doors.MOST_OF_CHAT} == {}
    assert figures["socket"]["second"] >= doors.LEAST_STEPS


def test_figures_are_of_doors_that_there_are():
    measured = read_record(doors.NAME)["figures"]["doors"]
    assert set(measured) <= {name for name, door in DOORS.items() if door.needs != "dialgym"}
    assert "tokens" in measured


def test_all_dialogues_are_played_to_their_end():
    scripts = doors.scripts_of("Wordle-20", 4)
    chat, batch = doors.Chat("Wordle-20-v0"), doors.ChatBatch("Wordle-20-v0", 4)
    doors.play_chat(chat, scripts)
    assert len(chat.said) == len(scripts[-1])
    doors.play_batch(batch, scripts)
    assert [len(said) for said in batch.said] == list(map(len, scripts))


def test_rates_are_of_turns():
    calls = []
    found = doors.rates({"a": lambda: calls.append(sum(range(10_000)))}, 5)
    assert len(calls) == doors.REPEATS + 1
    assert found["a"] > 0


def test_the_table_has_a_row_of_each():
    figures = {
        "chats": {"Game": {"view": 2000, "chat": 1000, "batch": 4000}},
        "doors": {"door": {"library": "Lib 1.0", "door": 500, "view": 1000}},
        "socket": {},
    }
    text = doors.table(figures)
    assert "| Game | 2,000 | 1,000 | 4,000 | 2.00 x | 0.50 x |" in text
    assert "| door | Lib 1.0 | 500 | 1,000 | 2.00 x |" in text
    assert "WebSocket" not in text
    figures["socket"] = {"second": 1234, "CPU-second": 1000}
    assert "1,234 steps a second" in doors.table(figures)


@pytest.mark.parametrize("package", ["numpy", "yaml"])
def test_a_library_is_named_with_its_version(package):
    name, number = doors.library(package).split()
    assert name.lower() in ("numpy", "pyyaml")
    assert number[0].isdigit()
