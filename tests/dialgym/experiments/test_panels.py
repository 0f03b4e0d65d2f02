"""Panels are read strictly, and those of the registry are whole."""

import copy

import numpy as np
import pytest

from dialgym.experiments.panel import Panel, panel_named, panels
from dialgym.experiments.row import protocol_of
from dialgym.registry import entry_of, make_task
from tests.support.tiny_panel import TINY, VALUES


def changed(**entries):
    return {**copy.deepcopy(VALUES), **entries}


def test_the_registry_has_the_panels_and_each_of_their_ids_and_policies():
    names = {
        "wordle",
        "wordle-deep",
        "wordle-large",
        "wordle-distilled",
        "slot-filling-acts",
        "slot-filling-words",
        "multi-domain",
        "questions",
    }
    more = {"comments", "language", "slot-filling-acts-correct", "slot-filling-words-cloned"}
    more |= {"held-out", "questions-distilled", "service-desk", "lmrl"}
    assert names | more == set(panels())
    for panel in panels().values():
        assert panel.description.endswith(".")
        assert panel.seeds >= 3
        for place in panel.environments:
            entry = entry_of(place.id)
            task = make_task(entry, place.settings)
            known = {*task.speakers[task.parties[0]], *task.generators, "random"}
            assert {*panel.references} <= known, place.id
            assert place.data is None or place.data.policy in known, place.id
            for goal in place.goals:
                task.initial(np.random.default_rng(0), goal)


def test_every_learner_of_a_panel_has_a_budget_and_settings(tmp_path):
    pytest.importorskip("stable_baselines3")
    from agents.experiments.panel_jobs import jobs_of

    for panel in panels().values():
        if panel.imported_from:
            continue
        jobs = jobs_of(panel, [*panel.algorithms], panel.environments, [0], tmp_path)
        assert {job.name for job in jobs} == {*panel.algorithms}
        assert all(job.length() > 0 for job in jobs)


def test_nothing_that_the_panel_of_held_out_secrets_scores_is_learned_from():
    """By the name of each word and thing, and for scenes by what is seen of them."""
    panel = panels()["held-out"]
    for place in panel.environments:
        learned, scored = (
            make_task(entry_of(place.id), settings)
            for settings in (place.settings, place.scoring_settings)
        )
        assert not {*map(_secret, _states(learned))} & {*map(_secret, _states(scored))}
        assert len(panel.evaluation.options(scored)) >= panel.evaluation.episodes


def _states(task):
    rng = np.random.default_rng(0)
    return [(task, task.initial(rng, option)) for option in task.secrets()]


def _secret(played):
    task, state = played
    place = task.truth(state)
    pool = getattr(task, "pool", None)
    return task.naming(state) if pool is None else pool.told(place)


def test_an_environment_takes_over_what_is_said_for_all():
    (place,) = TINY.environments
    assert (place.id, place.short) == ("dialgym/Wordle-20-v0", "Wordle-20-v0")
    assert place.budget == {"tokens": 1000, "gradient_steps": 20}
    assert place.data.policy == "mixture"
    own = [{"id": "Wordle-20-v0", "budget": {"tokens": 5}}, "Wordle-200-v0"]
    first, second = Panel.of("x", changed(environments=own)).environments
    assert (first.budget["tokens"], second.budget["tokens"]) == (5, 1000)


def test_a_learners_budget_goes_over_an_environments_and_its_own_there_over_both():
    own = {"id": "Wordle-20-v0", "budgets": {"bc": {"gradient_steps": 7}}}
    learners = {"bc": {"budget": {"gradient_steps": 50}}, "ppo": {}}
    panel = Panel.of("x", changed(environments=[own, "Wordle-200-v0"], algorithms=learners))
    steps = [
        [place.budget_of(learner)["gradient_steps"] for place in panel.environments]
        for learner in panel.algorithms.values()
    ]
    assert steps == [[7, 50], [20, 20]]
    tenth = panel.scaled(0.1)
    assert tenth.environments[0].budget_of(tenth.algorithms["bc"])["gradient_steps"] == 1


def test_a_share_of_the_budgets_is_a_panel_of_its_own():
    tenth = panel_named("wordle@0.1")
    whole = panel_named("wordle")
    assert tenth.name == "wordle@0.1"
    assert tenth.label == f"wordle@0.1, version {whole.version}"
    for small, place in zip(tenth.environments, whole.environments, strict=True):
        assert small.budget == {unit: round(0.1 * n) for unit, n in place.budget.items()}
        assert (small.data, small.settings) == (place.data, place.settings)
        assert protocol_of(tenth, small) != protocol_of(whole, place)
    assert tenth.description.endswith("With 10 % of the budgets.")
    assert TINY.scaled(1e-6).environments[0].budget == {"tokens": 1, "gradient_steps": 1}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wordle@1", r"a share of its budgets between 0 and 1, such as wordle@0.1, got 1"),
        ("wordle@-2", r"between 0 and 1, .* got -2"),
        ("wordle@nan", r"between 0 and 1, .* got nan"),
        ("wordle@", r"panel 'wordle@': expected a number after '@', such as wordle@0.1"),
        ("wordle@x", r"expected a number after '@'"),
        ("wordl@0.1", r"unknown panel 'wordl@0.1'"),
        ("slot-filling-acts@0.1", r"has tests of whole trainings, and no budgets"),
    ],
)
def test_shares_that_are_none_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        panel_named(name)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"vresion": 2}, r"unknown entry 'vresion' in panel 'x'. Did you mean 'version'"),
        ({"version": "1"}, r"panel 'x', version: expected a whole number, got '1'"),
        ({"seeds": 0}, r"panel 'x', seeds: expected a whole number from 1, got 0"),
        ({"seeds": True}, r"seeds: expected a whole number, got True"),
        ({"environments": []}, r"environments: expected distinct ids, got \[\]"),
        ({"environments": ["Wordel-20-v0"]}, r"environments\[0\], id: .*Wordle-20-v0"),
        ({"environments": [3]}, r"environments\[0\]: expected names with values, got 3"),
        ({"budget": {"token": 3}}, r"unknown entry 'token' in panel 'x', budget.*'tokens'"),
        ({"algorithms": {"ppo": {"start": "no"}}}, r"unknown learner 'no' in panel 'x', start"),
        ({"algorithms": {"ppo": {"start": "ppo"}}}, r"'x', start: .* got 'ppo' before itself"),
        ({"algorithms": {"ppo": {"algoritm": "bc"}}}, r"algorithms, ppo. Did you mean 'algorithm'"),
        ({"algorithms": {"bc": {"environments": ["Wordle-v9"]}}}, r"environment 'Wordle-v9' in x"),
        ({"algorithms": {"bc": {"environments": [3]}}}, r"unknown environment '3' in x"),
        (
            {"environments": [{"id": "Wordle-20-v0", "budgets": {"bcc": {"tokens": 5}}}]},
            r"unknown learner 'bcc' in panel 'x', Wordle-20-v0, budgets. Did you mean 'bc'",
        ),
        (
            {"environments": [{"id": "Wordle-20-v0", "budgets": {"bc": 5}}]},
            r"environments\[0\], budgets, bc: expected a mapping, got 5",
        ),
        ({"data": {"policy": "mixture"}}, r"data: expected an entry 'episodes', got \['policy'\]"),
        ({"evaluation": {"episodes": 1.5}}, r"evaluation, episodes: expected a whole number"),
        ({"evaluation": {"secrets": "some"}}, r"unknown secrets 'some' in panel 'x', evaluation"),
        ({"metric": "reward"}, r"unknown metric 'reward' in panel 'x'"),
    ],
)
def test_bad_content_is_one_clear_error(entries, message):
    with pytest.raises(ValueError, match=message):
        Panel.of("x", changed(**entries))


def test_unknown_names_are_said():
    with pytest.raises(ValueError, match=r"unknown panel 'wordel'.*Did you mean 'wordle'"):
        panel_named("wordel")
    with pytest.raises(ValueError, match=r"unknown environment 'Wordle-v1' in tiny, version 1"):
        TINY.environment("Wordle-v1")


def test_the_hash_of_the_protocol_follows_what_scores_depend_on():
    (place,) = TINY.environments
    known = protocol_of(TINY, place)
    assert known == protocol_of(Panel.of("tiny", changed(seeds=9, description="Another.")), place)
    for entries in ({"version": 2}, {"evaluation": {"episodes": 25, "seed": 77, "trials": 4}}):
        assert protocol_of(Panel.of("tiny", changed(**entries)), place) != known


def test_panels_of_all_secrets_have_references_over_all_secrets():
    """Else the best policy could pass 100 by the luck of what was drawn for the expert."""
    for panel in panels().values():
        for place in panel.environments if panel.evaluation.secrets == "all" else ():
            assert panel.evaluation.options(make_task(entry_of(place.id), place.settings))
            scores = entry_of(place.id).row.scores
            assert scores.get("secrets") == "all", (
                f"{place.short}: run `dialgym benchmark references --ids {place.short} --write "
                "envs_registry.yaml`"
            )
