"""Checks of judges: stubs whose opinions are known are measured within the intervals."""

import json

import numpy as np
import pytest

from dialgym.experiments import check_judge, evaluate
from dialgym.experiments.judge_check import judge_of
from dialgym.experiments.judge_figures import (
    FALSE,
    KAPPA,
    JudgedDialogues,
    auc,
    figures_of,
    kappa,
    length_bias,
    over_goals,
    rank_correlation,
)
from dialgym.registry import entry_of
from dialgym.rewards.base import FunctionReward
from tests.support.by_day import by_day
from tests.support.chat_server import chat_server
from tests.support.judging_model import JudgingModel, agreeable, lenient, random, truthful

pytest.importorskip("scipy", reason="the extra agents")
ENV, POLICIES, SEED, MADE = (
    "SlotFilling-utterance-v0",
    ["handcrafted", "random"],
    5,
    {"error_rate": 0.3},
)


def checked(opinion, episodes=40, salt=0, policies=POLICIES, **more):
    """The check of a stub behind a service, asked over HTTP."""
    pytest.importorskip("httpx", reason="the extra lm")
    model = JudgingModel(ENV, policies, episodes, opinion, SEED, MADE, salt)
    with chat_server(model) as server:
        judge = {"model": "stub", "base_url": server.url, "retries": 0, "party": "user"}
        return check_judge(ENV, judge, policies, episodes, SEED, MADE, **more), model


def test_a_truthful_judge_agrees_everywhere():
    found, _ = checked(truthful)
    figures = found.figures
    for name in ("agreement, %", "same verdict when asked again, %"):
        assert figures[name].value == 100 == figures[name].high
        assert 90 < figures[name].low < 100
    assert figures[KAPPA].value == figures["AUC"].value == 1
    assert 0.7 < figures[KAPPA].low < 1
    assert figures[FALSE].value == 0 < figures[FALSE].high < 20
    assert figures["rank correlation with the return"].value > 0.7
    assert found.tells_success
    assert "openai:stub agrees with the rules beyond chance: Cohen's kappa 1.00 [" in found.verdict
    assert [each.difference.value for each in found.by_policy] == [0, 0]


def test_success_is_that_of_evaluate():
    found, _ = checked(truthful, 12)
    for each in found.by_policy:
        own = evaluate(each.policy, ENV, 12, [SEED], MADE)[entry_of(ENV).id]
        assert each.success.value == pytest.approx(100 * own.success)
        assert each.score.value == pytest.approx(own.success)


def test_one_that_always_says_yes_calls_all_failures_a_success():
    found, _ = checked(agreeable)
    assert found.figures[FALSE].value == 100
    assert 80 < found.figures[FALSE].low < 100
    assert found.figures["missed success, % of successes"].value == 0
    assert found.figures[KAPPA].value == 0
    assert found.figures["AUC"].value == 0.5
    assert found.figures["rank correlation with the return"] is None  # it never varies
    assert not found.tells_success
    assert "is not shown to agree" in found.verdict


def test_a_random_judge_agrees_by_chance():
    found, _ = checked(random, salt=1)
    low, high = found.figures[KAPPA].interval
    assert low < 0 < high
    assert found.figures["AUC"].low < 0.5 < found.figures["AUC"].high
    assert not found.tells_success


@pytest.mark.parametrize("rate", by_day([0.2, 0.6], 0.6))
def test_a_lenient_judge_is_measured_at_its_rate(rate):
    found, _ = checked(lenient(rate), salt=2)
    estimate = found.figures[FALSE]
    assert estimate.low < 100 * rate < estimate.high
    assert estimate.high - estimate.low < 45
    assert found.figures["missed success, % of successes"].value == 0
    assert found.tells_success
    assert found.by_policy[1].difference.value > 0  # the policy that fails is flattered


def test_one_that_changes_its_mind_is_inconsistent():
    pytest.importorskip("httpx", reason="the extra lm")
    with chat_server(lambda body: f"Score: {body['seed'] % 2}") as server:
        judge = {"model": "stub", "base_url": server.url}
        found = check_judge(ENV, judge, POLICIES, 30, repeats=2)
        once = check_judge(ENV, judge, POLICIES, 2, repeats=1)
    same = found.figures["same verdict when asked again, %"]
    assert same.low < 50 < same.high
    apart = found.figures["difference of scores when asked again, % of the range"]
    assert apart.value == pytest.approx(100 - same.value)
    assert not [name for name in once.figures if "again" in name]
    assert (found.usage["requests"], once.usage["requests"]) == (120, 4)


def test_it_is_written_and_reads_as_it_was(tmp_path):
    found, _ = checked(lenient(0.5), 10)
    found.to_json(tmp_path / "judge.json")
    record = json.loads((tmp_path / "judge.json").read_text())
    assert record["figures"][KAPPA] == [*found.figures[KAPPA]]
    assert record["by_policy"][0]["policy"] == "handcrafted"
    assert record["model"]["name"] == "openai:stub"
    assert record["usage"]["requests"] == 40
    tables = dict(found.tables())
    assert len(tables["Policies, %"]) == 3
    assert "A score of 0.5 or more is called a success." in found.caption
    assert "Cost of 40 judgements: 40 requests, 400 + 80 tokens." in found.caption


def test_any_reward_of_dialogues_is_a_judge():
    thanked = FunctionReward(lambda text: float("thank" in text.lower()), (0, 1))
    found = check_judge(ENV, thanked, POLICIES, 20, env_kwargs={"language": "english"})
    assert found.judge == "function"
    assert found.usage == found.model == {}
    unbounded = FunctionReward(lambda text: float(len(text)))
    with pytest.raises(ValueError, match="expected a threshold, as function has no bounds"):
        check_judge(ENV, unbounded, POLICIES, 2)
    found = check_judge(ENV, unbounded, POLICIES, 4, threshold=5)
    assert found.threshold == 5


def test_a_task_in_which_none_succeeds_has_no_verdict():
    one = FunctionReward(lambda text: 1.0, (0, 1))
    found = check_judge("Wordle-20-utterance-v0", one, ["optimal"], 5)  # which never fails
    assert found.figures[KAPPA] is None
    assert found.verdict.startswith("No verdict: ")
    assert not found.tells_success


@pytest.mark.parametrize(
    ("judge", "name"),
    [
        ({"model": "m"}, "openai:m"),
        ("openai:m", "openai:m"),
        ({"lm_judge": {"model": "m", "weight": 3}, "task": 0}, "openai:m"),
        ({"reward": "lm", "model": "m"}, "openai:m"),
        ({"j": {"reward": "lm_judge", "model": "m"}}, "openai:m"),
    ],
)
def test_a_judge_is_named_in_many_ways(judge, name):
    assert judge_of(judge).facts()["name"] == name
    assert judge_of("length").name == "length"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"episodes": 1}, "episodes"),
        ({"repeats": 0}, "repeats"),
        ({"policies": []}, "at least one policy"),
        ({"policies": ["nobody"]}, "unknown policy"),
        ({"threshold": float("nan")}, "threshold"),
    ],
)
def test_what_cannot_be_is_said(more, told):
    with pytest.raises(ValueError, match=told):
        check_judge(ENV, "length", **more)


# Figures


def test_figures_are_those_of_their_definitions():
    called = np.array([[1, 1, 0, 0, 1, 0]], bool)
    success = np.array([[1, 0, 0, 0, 1, 1]], bool)
    assert kappa(called, success) == pytest.approx(1 / 3)  # 4 of 6 agree, 3 by chance
    scores = np.array([[0.9, 0.2, 0.2, 0.1, 0.5, 0.2]])
    pairs = [(a, b) for a in scores[success] for b in scores[~success]]
    expected = np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])
    assert auc(scores, success) == pytest.approx(expected)
    assert rank_correlation(scores, scores**3) == pytest.approx(1)
    words = np.where(success, 100, 10) + np.array([[3, 1, 2, 3, 1, 2]])
    assert length_bias(success.astype(float), words, success) != length_bias(scores, words, success)
    assert np.isnan(length_bias(success.astype(float), words, success))  # nothing beside success
    longer = scores * 0 + words
    assert length_bias(longer, words, success) == pytest.approx(1)


@pytest.mark.parametrize("rare", [True, False])
def test_too_few_successes_or_failures_say_nothing_beyond_chance(rare):
    success = np.full((2, 50), not rare)
    for count in range(6):
        success[0, :count] = rare
        told = figures_of(JudgedDialogues(success + 0.0, success, success, success + 0.0, success))
        assert (told[KAPPA] is not None) == (told["AUC"] is not None) == (count >= 5)
    assert told[KAPPA].low < 0.3  # of five dialogues, however many goals there are


def simulated(rng, goals=60, rate=0.3, miss=0.1):
    """A judge with known rates, of goals that differ in how hard they are."""
    hard = rng.beta(1, 1, goals)
    success = rng.random((2, goals)) > hard
    called = np.where(success, rng.random((2, goals)) > miss, rng.random((2, goals)) < rate)
    scores = 0.5 * called + 0.5 * rng.random((2, goals))
    words = rng.integers(5, 50, (2, goals))
    return JudgedDialogues(scores, called, success, success + 0.0, words)


@pytest.mark.slow
def test_intervals_hold_the_truth():
    rng, count = np.random.default_rng(0), 100
    many = simulated(np.random.default_rng(9), 100_000)
    truth = {
        "agreement, %": 100 * (many.called == many.success).mean(),
        KAPPA: kappa(many.called, many.success),
        FALSE: 30.0,
        "missed success, % of successes": 10.0,
        "AUC": auc(many.scores, many.success),
        "rank correlation with the return": rank_correlation(many.scores, many.returns),
        "correlation with words said, given success": 0.0,
    }
    held = dict.fromkeys(truth, 0)
    for _ in range(count):
        for name, each in figures_of(simulated(rng, 40)).items():
            held[name] += each.low <= truth[name] <= each.high
    assert held.keys() == truth.keys()
    assert min(held.values()) > 88, held  # 95 % less three standard errors


def test_an_interval_stays_within_bounds_and_has_a_width():
    success = np.ones((1, 8), bool)
    estimate = over_goals(kappa, (success ^ (np.arange(8) < 2), success), (-1.0, 1.0))
    assert estimate.low >= -1
    for value in (True, False):
        called = np.full((1, 8), value)
        truth = np.arange(8)[None] < 4
        estimate = over_goals(lambda c, s: 100.0 * c[~s].mean(), (called, truth), (0.0, 100.0), 4)
        assert estimate.value == 100 * value
        assert 40 < estimate.high - estimate.low < 60  # of four dialogues
    assert over_goals(kappa, (success, success), (-1.0, 1.0)) is None
