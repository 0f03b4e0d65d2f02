"""Scripted questioners: what greedy maximises, and in which order they come out."""

import numpy as np
import pytest

import dialgym
from dialgym.tasks.posterior import information_gain
from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.policies import Bank, GreedySceneQuestioner
from dialgym.tasks.visual_dialogue.questions import all_questions, text
from dialgym.tasks.visual_dialogue.understanding import parse
from tests.support.toy_visdial import PlainPool, Same

SMALL = {"name": "scenes", "scenes": 60}
QUESTIONS = all_questions()


def play(task, name, seed, turns=20):
    """A dialogue, and all that was asked."""
    policy, rng = task.speaker_named("system", name), np.random.default_rng(seed)
    state = task.initial(rng)
    for _ in range(turns):
        if not state.over:
            task.speak(state, policy.reply(task, state, rng), rng)
        if not state.over:
            task.speak(state, task.answerer.reply(task, state, rng), rng)
    return state, [asked for asked, _ in state.history]


def test_information_is_that_of_the_definition():
    """The bank's sums over all questions at once against the mutual information of each."""
    task = VisualDialogue(SMALL)
    state = task.initial(np.random.default_rng(3))
    posterior = task.posterior(state)
    gain, texts = Bank.of(task.pool.answers).information(posterior)
    assert len(gain) == len(QUESTIONS)
    start = 0
    for question, found in zip(QUESTIONS, gain):
        answers = task.pool.answers.answers(question)
        chances = answers.chances[answers.content]  # (n, texts)
        assert found == pytest.approx(information_gain(posterior, chances), abs=1e-9)
        own = texts[start : start + len(answers.texts)]
        assert np.allclose(own, posterior @ chances)
        start += len(answers.texts)


def test_greedy_asks_for_the_most_information_that_is_not_punished():
    plain, task = VisualDialogue(SMALL), VisualDialogue(SMALL, penalty="hard", yes_no=1000)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        state = task.initial(rng)
        gain, _ = Bank.of(task.pool.answers).information(task.posterior(state))
        asked = QUESTIONS.index(parse(GreedySceneQuestioner().reply(plain, state, rng)))
        assert gain[asked] >= gain.max() - 1e-9
        assert not parse(GreedySceneQuestioner().reply(task, state, rng)).yes_no


def test_the_chance_to_find_is_that_of_all_scenes_and_answers_tried_out():
    """Against the guesser itself, after each way to answer of each scene."""
    task = VisualDialogue({"name": "scenes", "scenes": 30})
    state, _ = play(task, "random", 1, turns=1)
    believed, posterior = task.by_answers(state), task.posterior(state)
    assert (believed > 0).sum() > 3
    assert not state.over
    chances = Bank.of(task.pool.answers).found(believed, posterior)
    for place in range(0, len(QUESTIONS), 7):
        said, expected = task.pool.questions[place], 0.0
        answers = task.pool.answers.answers(QUESTIONS[place])
        for image, likely in enumerate(posterior):
            for answer, chance in zip(answers.texts, answers.chances[answers.content[image]]):
                history = (*state.history, (said, answer))
                if likely and chance:
                    held = Held(state.lines[0].text, history, image)
                    expected += likely * chance * (task.guesser.percentiles([held])[0] == 1)
        assert chances[place] == pytest.approx(expected), said


def test_kinds_of_questions():
    task = VisualDialogue(SMALL, mode="10_stop")
    for name, allowed in (("greedy-open", {False}), ("greedy-yes-no", {True})):
        _, asked = play(task, name, 0)
        assert {parse(each).yes_no for each in asked} == allowed
    with pytest.raises(ValueError, match="kinds of GreedySceneQuestioner must be one of 'all', 'o"):
        GreedySceneQuestioner("closed")


def test_human_like_asks_mostly_yes_no_questions_and_none_twice():
    task = VisualDialogue(SMALL, mode="10_stop")
    every = []
    for seed in range(30):
        _, asked = play(task, "human-like", seed)
        assert len(set(asked)) == len(asked) == 10
        every += asked
    share = np.mean([parse(each).yes_no for each in every])
    assert 0.5 < share < 0.7


def test_graded_data_has_all_skills_about_the_same_images():
    settings = {"human_like": 4, "mixed": 2, "random": 0, "smart": 0.7}
    data = dialgym.collect("VisualDialogue-100-v0", "graded", 40, policy_kwargs=settings)
    kinds = np.array(data["kind"])
    counts = {kind: int((kinds == kind).sum()) for kind in set(kinds)}
    assert counts == {"greedy": 40, "human-like": 160, "mixed": 80}
    means = [data.returns[kinds == kind].mean() for kind in ("human-like", "mixed", "greedy")]
    assert means == sorted(means)
    for source, branch, after in data.pairs():
        assert after == 0
        assert data[source]["turns"][0] == data[branch]["turns"][0]  # the caption
    with pytest.raises(ValueError, match="smart of random-mixture"):
        dialgym.collect("VisualDialogue-100-v0", "graded", 1, policy_kwargs={"smart": "much"})


def test_branches_begin_as_the_dialogue_that_they_leave():
    data = dialgym.collect("VisualDialogue-100-v0", "branching", 8)
    pairs = data.pairs("random")
    assert len(pairs) == data.lengths[np.array(data["kind"]) == "human-like"].sum()
    for source, branch, after in pairs:
        kept = 1 + 2 * after
        assert data[source]["turns"][:kept] == data[branch]["turns"][:kept]


def test_who_may_stop_stops():
    task = VisualDialogue(SMALL, mode="agent_stops", cost=0.01)
    for name in ("greedy", "human-like", "random"):
        ends = [play(task, name, seed)[0].lines[-1].text for seed in range(20)]
        assert "<stop>" in ends, name
    state, _ = play(task, "greedy", 0)
    assert task.posterior(state).max() > 0.9


def test_the_better_questioner_needs_fewer_questions():
    scores = {}
    for name in ("greedy", "human-like", "random"):
        result = dialgym.evaluate(name, "dialgym/VisualDialogue-100-v0", 150, (0,))
        scores[name] = result.mean_return
    assert scores["greedy"] > -0.5
    assert scores["greedy"] > scores["human-like"] + 1.5
    assert scores["greedy"] > scores["random"] + 1.5


def test_penalties_make_yes_no_questions_the_worst():
    scores = {
        name: dialgym.evaluate(name, "dialgym/VisualDialogue-Hard-v0", 60, (0,)).mean_return
        for name in ("greedy", "greedy-yes-no", "human-like")
    }
    assert scores["greedy"] > scores["greedy-yes-no"] + 2 > scores["human-like"] + 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("random", "policy 'random' of VisualDialogue: PlainPool has no questions"),
        ("human-like", "policy 'human-like' of VisualDialogue: expected generated scenes"),
        ("greedy", "policy 'greedy' of VisualDialogue: expected generated scenes"),
    ],
)
def test_policies_that_do_not_fit_the_pool_say_so(name, message):
    task = VisualDialogue(PlainPool(), Same(), Same())
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        task.speaker_named("system", name).reply(task, task.initial(rng), rng)
    with pytest.raises(
        ValueError, match="constraint of VisualDialogue: PlainPool has no questions"
    ):
        VisualDialogue(PlainPool(), Same(), Same(), constraint="questions")


def test_all_questions_are_in_words_of_the_pool():
    assert VisualDialogue(SMALL).pool.questions == tuple(map(text, QUESTIONS))
