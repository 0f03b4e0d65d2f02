"""Analysis of dialogues worked by hand: requests, misheard acts, loops, failures, links."""

import re

import numpy as np
import pytest

import dialgym
from dialgym.datasets import concatenate
from dialgym.experiments import analyze
from dialgym.experiments.analysis import loops
from dialgym.experiments.analysis_page import write_analysis
from dialgym.language import Utterance
from dialgym.rollouts.player import make_dialogue
from dialgym.tasks.findings import misheard
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.multi_domain import MultiDomain
from tests.support.commands import fail, succeed

pytest.importorskip("pyarrow")
SLOTS, CITY = "SlotFilling-v0", "MultiWOZ-v0"
OPTIONS = {"constraints": {"area": "north"}, "requests": ["phone"], "patience": 9}


class Saying:
    """A system that says some texts, the last one again and again."""

    def __init__(self, *texts):
        self.texts = texts

    def reply(self, task, state, rng):
        said = sum(line.speaker == "system" for line in state.heard_by_system)
        return self.texts[min(said, len(self.texts)) - 1]


def collected(*texts, **settings):
    settings = {"language": "acts", **settings}
    return dialgym.collect(SLOTS, Saying(*texts), 1, options=OPTIONS, env_kwargs=settings)


def test_a_loop_and_no_row():
    found = analyze(collected("request(food)", turns=6))
    assert found.loops["system: request(food)"] == 1
    assert [(group.kind, group.rows) for group in found.failures] == [
        ("Restaurants: no row named", [0])
    ]
    assert found.requests == {"Restaurants phone": (1, 0)}
    assert found.domains["Restaurants"][1]["success"].value == 0
    assert not found.misheard


@pytest.mark.parametrize(
    ("area", "failure"),
    [("north", "requests unanswered"), ("south", "another row than was wanted")],
)
def test_failures_of_slot_filling_are_told_apart(area, failure):
    task = SlotFilling()
    row = next(row for row in task.domain.database.rows if row["area"] == area)
    more = f',phone="{row["phone"]}"' if area == "south" else ""
    found = analyze(collected(f'inform(name="{row["name"]}"{more})', "bye()"))
    assert found.failures[0].kind == f"Restaurants: {failure}"


def test_misheard_acts_are_counted():
    found = analyze(dialgym.collect(CITY, "rule", 5, env_kwargs={"error_rate": 1.0}))
    assert any(name.endswith(" lost") for name in found.misheard)
    heard = analyze(dialgym.collect(SLOTS, "handcrafted", 5, env_kwargs={"error_rate": 1.0}))
    assert sum(heard.misheard.values()) > 5
    assert not analyze(dialgym.collect(CITY, "rule", 5)).misheard


@pytest.mark.parametrize(
    ("said", "heard", "expected"),
    [
        ([("a()", 1), ("b()", 2)], [("b()", 2)], ["a() lost"]),
        ([("a()", 1)], [("a()", 2)], ["a() as another value"]),
        ([("a()", 1)], [("c()", 1), ("d()", 1)], ["a() as c()", "nothing as d()"]),
        ([("a()", 1)], [("a()", 1)], []),
    ],
)
def test_acts_that_are_taken_for_others(said, heard, expected):
    assert misheard(said, heard) == expected


def test_three_times_in_a_row_is_a_loop():
    lines = [Utterance("system", text) for text in "aababbb"]
    lines.insert(2, Utterance("user", "c"))
    assert loops(lines) == {"system: b"}
    assert loops([Utterance("user", "")] * 3) == {"user: (nothing)"}
    assert not loops([Utterance("user", "a", private=True)] * 3)


def test_multiwoz_by_domain():
    goal = {"hotel": {"info": {"area": "north"}, "reqt": ["phone"]},
            "attraction": {"info": {"area": "centre"}, "reqt": ["postcode"]}}  # fmt: skip
    given = {"options": {"goal": goal}, "env_kwargs": {"language": "acts"}}
    data = dialgym.collect(CITY, "rule", 4, **given)
    data += dialgym.collect(CITY, Saying("Hotel-Request(Area)"), 2, **given)
    found = analyze(data)
    assert found.dialogues == 6
    assert found.success.value == pytest.approx(4 / 6)
    for domain in ("hotel", "attraction"):
        count, measures = found.domains[domain]
        assert count == 6
        assert measures["success"].value == measures["inform_recall"].value == pytest.approx(4 / 6)
        assert measures["book_rate"] is None
    assert found.requests == {"hotel phone": (6, 4), "attraction postcode": (6, 4)}
    [group] = found.failures
    assert group == ("attraction: requests unanswered; hotel: requests unanswered", [4, 5])
    assert found.loops["system: Hotel-Request(Area)"] == 2
    text = found.to_markdown("http://127.0.0.1:8000/#/data/0?row={}")
    assert "[4](http://127.0.0.1:8000/#/data/0?row=4)" in text
    assert "| hotel phone | 2 | 33% |" in text


def test_a_dialogue_of_several_domains():
    task = MultiDomain([SlotFilling("Restaurants"), SlotFilling("Hotels")])
    rng = np.random.default_rng(0)
    state = task.initial(rng, {"domains": ["Hotels", "Restaurants"]})
    while not task.speak(state, "bye()", rng).terminated:
        pass
    found = task.findings(state)
    assert {name: own["success"] for name, own in found.domains.items()} == {
        "Hotels": 0.0,
        "Restaurants": 0.0,
    }
    assert found.failures == ["Hotels: not served", "Restaurants: not served"]


def test_a_task_without_findings():
    found = analyze(dialgym.collect("Wordle-20-v0", "random", 3))
    assert [group.kind for group in found.failures] == ["not solved at its end"]
    assert not found.domains


def test_what_cannot_be_played_again_is_left_out():
    data = dialgym.collect(SLOTS, "handcrafted", 2)
    table = data.table.set_column(
        data.table.column_names.index("seed"), "seed", [np.array([1, data["seed"][1]], np.uint64)]
    )
    changed = type(data)(table)
    assert (analyze(changed).dialogues, analyze(changed).left_out) == (1, 1)
    assert "1 that did not go as they are stored" in analyze(changed).caption
    with pytest.raises(ValueError, match=r"analyze: expected dialogues .* got 1 of which none"):
        analyze(changed.select([0]))
    with pytest.raises(ValueError, match="of one environment"):
        analyze(concatenate([data, dialgym.collect("Wordle-20-v0", "random", 1)]))


def test_the_system_is_not_told_what_it_misheard():
    dialogue = make_dialogue("MultiWOZ-v0", {"error_rate": 1.0})
    dialogue.start(np.random.default_rng(0), None)
    assert dialogue.state.misheard
    seen = dialogue.task.observed(dialogue.state, "system")
    with pytest.raises(dialgym.tasks.HiddenStateError):
        len(seen.misheard)


def test_a_page_whose_links_lead_to_dialogues(tmp_path):
    data = dialgym.collect(SLOTS, Saying("<b>"), 3, env_kwargs={"turns": 4})
    write_analysis(tmp_path / "a.html", analyze(data), data, "<i>")
    text = (tmp_path / "a.html").read_text()
    links = re.findall(r'href="#(dialogue-\d+)"', text)
    assert sorted(links) == sorted(re.findall(r'id="(dialogue-\d+)"', text)) != []
    assert "<b>" not in text
    assert "<i>" not in text


def test_the_command_reports_stored_dialogues(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    succeed("collect", CITY, "--policy", "random", "-n", "5", "--out", "data")
    text = succeed("report", "data")
    assert "Success by domain" in text
    assert "Unanswered requests" in text
    assert "open data/report.html" in text
    assert 'id="dialogue-0"' in (tmp_path / "data" / "report.html").read_text()
    assert "expected dialogues of one environment" in fail("report", both(tmp_path))


@pytest.mark.slow
def test_the_report_of_a_run_has_an_analysis(tmp_path, monkeypatch):
    pytest.importorskip("sb3_contrib")
    monkeypatch.chdir(tmp_path)
    small = ("--timesteps", "64", "--n-envs", "4", "-p", "n_steps=16", "-p", "batch_size=64")
    succeed("train", "maskable-ppo", "CamRestaurants-Env3-act-v0", *small, "--out", "run")
    succeed("report", "run", "-n", "3")
    text = (tmp_path / "run" / "report.html").read_text()
    assert 'id="analysis"' in text
    assert "Success by domain" in text


def both(folder):
    """A folder with dialogues of two environments."""
    data = [dialgym.collect(env, "random", 1) for env in (SLOTS, "Wordle-20-v0")]
    concatenate(data).save(folder / "both")
    return "both"
