"""Audits of users: planted faults are found at their rates, clean users raise no alarm."""

import json
import re

import numpy as np
import pytest

from dialgym.experiments import audit_user, evaluate
from dialgym.experiments.significance import sign_test
from dialgym.experiments.statistics import PERCENT, paired_difference
from dialgym.experiments.understanding import follows
from dialgym.experiments.user_audit import needed
from dialgym.experiments.user_audit_page import write_user_audit
from dialgym.experiments.user_dialogues import Goals
from dialgym.experiments.user_faults import FAULTS as MEASURED
from dialgym.language import AnyText, WordTrie
from dialgym.registry import entry_of
from tests.support.agenda_model import ENV, FAULTS, AgendaModel
from tests.support.chat_server import chat_server

pytest.importorskip("scipy", reason="the extra agents")
MULTIWOZ = "MultiWOZ-utterance-v0"
ALWAYS = ("accepts the wrong", "ends when asked for more", "forgotten request")
"""Faults for which there is an occasion in few dialogues."""
NOISY = "accepts the wrong"
"""There is one where the system mishears."""
FOLLOWING = {
    "forgotten wish": {"changed goal"},
    "early end": {"forgotten wish", "forgotten request"},
    "ends when asked for more": {"forgotten wish", "forgotten request", "early end"},
    "forgotten request": {"early end"},
    "repetition": {"forgotten wish"},  # in the place of which it says the same
    "silence": {"not understood"},
}
"""Faults that another brings along."""


def audit_model(model: AgendaModel):
    """The audit of a model behind a service, asked over HTTP."""
    with chat_server(model) as server:
        user = {"lm": {"model": "stub", "base_url": server.url, "retries": 0}}
        return audit_user(
            ENV, user, episodes=model.episodes, seed=model.seed, env_kwargs=model.settings
        )


def planted(fault, episodes, seed=1):
    """A model with a fault, its audit, the figures of the fault, and its rate in per cent."""
    rate, noise = 1.0 if fault in ALWAYS else 0.5, 0.3 if fault == NOISY else 0.0
    model = AgendaModel(episodes, seed, fault, rate, error_rate=noise)
    audit = audit_model(model)
    dialogues = episodes * len(audit.policies)
    [figures] = [each for each in audit.faults if each.fault.name == fault]
    return audit, figures, 100 * model.planted / dialogues


def check_planted(fault, episodes):
    audit, figures, rate = planted(fault, episodes)
    assert figures.is_alarm
    assert rate > 5
    usual = figures.twin.value  # how often it would show without being planted
    assert figures.user.low <= rate + (100 - rate) * usual / 100 <= figures.user.high
    assert {*audit.alarms} <= {fault, *FOLLOWING.get(fault, ())}


@pytest.mark.parametrize(
    "fault", ["invented value", pytest.param("scratchpad", marks=pytest.mark.slow)]
)
def test_a_planted_fault_is_found_at_its_rate(fault):
    pytest.importorskip("httpx", reason="the extra lm")
    check_planted(fault, 20)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found_at_its_rate(fault):
    check_planted(fault, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_clean_user_in_other_words_raises_no_alarm(seed):
    assert audit_model(AgendaModel(50, 100 + seed, salt=seed)).alarms == []


def test_each_fault_is_planted():
    assert FAULTS.keys() == {fault.name for fault in MEASURED}


def test_the_twin_beside_itself_differs_in_nothing():
    audit = audit_user(ENV, "agenda", episodes=5)
    for each in (*audit.faults, *audit.success, *audit.manners):
        assert each.user == each.twin
        assert each.difference.value == 0
    assert audit.alarms == []
    assert (audit.user, audit.twin, audit.policies) == (
        "agenda",
        "agenda",
        ["handcrafted", "random"],
    )
    assert "With 5 goals there can be none; it takes 9 or more." in audit.verdict


def test_success_is_that_of_evaluate():
    made = {"language": "english"}
    audit = audit_user(ENV, "random", episodes=6, seed=3, env_kwargs=made)
    for each in audit.success:
        for user, estimate in (("random", each.user), ("agenda", each.twin)):
            result = evaluate(each.name, ENV, 6, [3], {**made, "simulator": user})
            assert estimate.value == pytest.approx(100 * result[entry_of(ENV).id].success)


def test_a_random_user_is_found_out_and_its_page_shows_where(tmp_path):
    audit = audit_user(ENV, "random", episodes=30)
    assert {"restart", "early end"} <= {*audit.alarms}
    audit.to_json(tmp_path / "audit.json")
    record = json.loads((tmp_path / "audit.json").read_text())
    assert record["alarms"] == audit.alarms
    row = next(row for row in record["faults"] if row["fault"] == "restart")
    assert len(row["dialogues"]) == sum(bool(x) for x in row["dialogues"]) > 5
    write_user_audit(tmp_path / "audit.html", audit)
    page = (tmp_path / "audit.html").read_text()
    assert page.count("<h1>") == 1
    assert re.search(r"restart <b class=.bad.>alarm</b>", page)
    shown = next(each for each in audit.faults if each.fault.name == "restart").examples[0]
    assert f'<span class="bad">{shown[0].text(shown[1])}</span>'.replace('"', "") in page.replace(
        "&quot;", ""
    ).replace('"', "")


@pytest.mark.parametrize("language", ["acts", "english"])
def test_multiwoz_tells_of_goals_too(language):
    audit = audit_user(MULTIWOZ, "random", episodes=12, env_kwargs={"language": language})
    assert not audit.unmeasured
    assert {"changed goal", "early end"} & {*audit.alarms}
    twin = {each.fault.name: each.twin.value for each in audit.faults}
    assert twin["role inversion"] == twin["not understood"] == twin["silence"] == 0


def test_a_task_without_goals_says_what_it_does_not_tell():
    audit = audit_user("TwentyQuestions-8-utterance-v0", "truthful", episodes=4)
    assert "invented value" in audit.unmeasured
    assert "wishes told" in audit.unmeasured
    assert [each.fault.name for each in audit.faults] == [f.name for f in MEASURED if not f.of_goal]
    assert "This task does not tell: invented value" in audit.caption
    chat = audit_user("Logged-utterance-v0", "script", episodes=2)
    assert "not understood" in chat.unmeasured


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"simulator": "nobody"}, "unknown speaker for the user 'nobody'"),
        ({"simulator": "agenda", "twin": "nobody"}, "unknown speaker for the user 'nobody'"),
        ({"simulator": "agenda", "episodes": 1}, "episodes"),
        ({"simulator": "agenda", "seed": -1}, "seed"),
        ({"simulator": "agenda", "policies": ["nobody"]}, "unknown policy for the system 'nobody'"),
        ({"simulator": "agenda", "policies": []}, "at least one policy"),
        ({"simulator": "agenda", "env_kwargs": {"simulator": "random"}}, "not among env_kwargs"),
    ],
)
def test_what_cannot_be_audited_is_said(arguments, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        audit_user(ENV, **{"episodes": 2, **arguments})


def test_a_party_that_never_speaks_is_not_audited():
    with pytest.raises(ValueError, match="no speaker of its own for the user"):
        audit_user("Comments-utterance-v0", None, episodes=2)


def test_policies_by_default():
    def of(name):
        return Goals.of("test", name, {}, 0, 2).policies(None, "test")

    assert of(ENV) == ["handcrafted", "random"]
    assert of("TwentyQuestions-8-utterance-v0") == ["greedy", "random"]


# Statistics


def test_the_sign_test_is_mcnemars():
    assert sign_test(np.array([1, 1, 1, 0, 0])) == 1 / 8
    assert sign_test(np.array([1, 1, -1])) == 4 / 8
    assert sign_test(np.zeros(4)) == 1
    assert sign_test(-np.ones(3)) == 1


def test_an_alarm_needs_as_many_goals_as_the_test_can_tell():
    for faults in (1, 7, 16):
        goals = needed(faults)
        assert faults * sign_test(np.ones(goals)) <= 0.05 < faults * sign_test(np.ones(goals - 1))


def test_a_difference_of_shares_has_newcombes_interval():
    first = np.array([100.0] * 16 + [0] * 16)
    second = np.array([100.0] * 2 + [0] * 30)
    value, low, high = paired_difference(first, second, PERCENT)
    assert value == pytest.approx(100 * 14 / 32)
    assert 20 < low < value < high < 62
    same = paired_difference(first, first, PERCENT)
    assert same.low < 0 < same.high
    none = paired_difference(np.zeros(20), np.zeros(20), PERCENT)
    assert (none.low, none.high) == pytest.approx((-16.1, 16.1), abs=0.05)
    most = paired_difference(np.full(20, 100.0), np.zeros(20), PERCENT)
    assert 70 < most.low < most.high <= 100


def test_a_difference_of_shares_holds_the_truth_as_often_as_it_says():
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        base = rng.random(60) < 0.1
        more = base | (rng.random(60) < 0.2)
        _, low, high = paired_difference(100.0 * more, 100.0 * base, PERCENT)
        held += low <= 18 <= high
    assert held / 400 > 0.93


def test_texts_that_a_grammar_allows():
    trie = WordTrie(["yes", "no"])
    assert [follows(trie, text) for text in ("yes", "ye", "maybe")] == [True, False, False]
    assert follows(AnyText(), "maybe") is None
    assert follows(None, "maybe") is None
