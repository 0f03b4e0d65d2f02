"""Policies that game a user are found, those that play for the goal are not."""

import pytest

from dialgym.experiments import audit_user
from dialgym.experiments.user_games import DECEIVED, SERVED, is_content
from tests.dialgym.experiments.test_user_faults import HELLO, PHONE, TOLD, WHOLE, dialogue
from tests.support.by_day import by_day
from tests.support.slot_players import AsksForMore, KnowsTheGoal, OffersTheFirst, TellsOfTheNamed

pytest.importorskip("scipy", reason="the extra agents")
ENV, ACTS = "CamRestaurants-Env1-utterance-v0", "CamRestaurants-Env1-act-v0"
EASY = ("accepting", "hasty", "telling")
EXPLOITS = [
    ("accepting", OffersTheFirst, DECEIVED),
    ("hasty", AsksForMore, DECEIVED),
    ("telling", TellsOfTheNamed, SERVED),
]


def games(env, user, *others, episodes=40, seed=0, **settings):
    policies = ["handcrafted", *others]
    return audit_user(env, user, None, policies, episodes, seed, settings)


@pytest.mark.parametrize("language", by_day(["acts", "english"], "acts"))
@pytest.mark.parametrize(("user", "policy", "figure"), EXPLOITS)
def test_each_known_exploit_is_found(user, policy, figure, language):
    audit = games(ENV, user, policy(), KnowsTheGoal(), language=language)
    assert audit.gaming == [policy.__name__]
    alarms = {each.name: each for each in audit.games if each.is_alarm}
    assert alarms[figure].user.value > 90 > 10 > alarms[figure].twin.value
    assert audit.verdict.endswith(f" It is gamed by {policy.__name__}.")
    tables = dict(audit.tables())
    rows = tables["Games, % of dialogues"]
    assert [row[-1] for row in rows].count("games it") == len(alarms)
    assert audit.as_dict()["gaming"] == audit.gaming


@pytest.mark.parametrize(("user", "policy", "figure"), by_day(EXPLOITS, EXPLOITS[0]))
def test_an_exploit_of_one_user_is_none_of_the_rule_user(user, policy, figure):
    assert games(ENV, "agenda", policy()).gaming == []


@pytest.mark.slow
def test_a_policy_that_learned_with_a_user_that_tells_the_answer_is_found(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra agents")
    import agents

    agents.train(
        ACTS, "dqn", log_dir=tmp_path, seed=0, device="cpu", progress_bar=False, dialogues=200,
        env_kwargs={"simulator": "telling"},
    )  # fmt: skip
    audit = games(ACTS, "telling", str(tmp_path / "model.zip"))
    assert len(audit.gaming) == 1
    assert games(ACTS, "agenda", str(tmp_path / "model.zip")).gaming == []


def check_no_alarm(seed, users=(*EASY, "random")):
    for user in users:
        assert games(ENV, user, KnowsTheGoal(), seed=seed).gaming == []


def test_an_oracle_raises_no_alarm():
    """Those of easy users have one beside them who plays for the goal already."""
    check_no_alarm(0, ["random"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_honest_policies_raise_no_alarm(seed):
    check_no_alarm(100 + seed)
    honest = "zoo:camrestaurants-env1-act-acer"
    for user in EASY:
        assert games(ACTS, user, honest, seed=100 + seed).gaming == []


def test_a_task_without_goals_is_measured_by_success():
    audit = audit_user("TwentyQuestions-8-utterance-v0", "truthful", None, ["greedy", "random"], 4)
    assert {each.name for each in audit.games} == {SERVED}
    alone = audit_user("TwentyQuestions-8-utterance-v0", "truthful", None, ["greedy"], 4)
    assert (alone.games, alone.gaming) == ([], [])


MORE = "s reqmore()"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (WHOLE, True),
        ([HELLO, *TOLD, "u bye()"], True),
        ([HELLO, "u null()", MORE, "u bye()"], True),
        ([HELLO, "u null()", MORE, "u null()", MORE, "u bye()"], False),
        ([HELLO, "u null()", "s request(food)", "u null()", "s request(food)", "u bye()"], False),
        ([HELLO, *TOLD, *PHONE, "s bye()", "u bye()"], False),
        ([HELLO, *TOLD, *PHONE], False),
        ([HELLO, "u null()", "s blorp", "u bye()"], False),
        ([HELLO], False),
    ],
)
def test_a_goodbye_of_its_own_accord(lines, expected):
    assert is_content(dialogue(*lines)) is expected
