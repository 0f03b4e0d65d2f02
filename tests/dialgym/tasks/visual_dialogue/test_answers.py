"""Answers and the exact guesser against a slow oracle that looks at one scene at a time."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.tasks.posterior import ExactPosterior
from dialgym.tasks.visual_dialogue import SceneBook, VisualDialogue
from dialgym.tasks.visual_dialogue.answerer import RuleAnswerer
from dialgym.tasks.visual_dialogue.answers import VAGUE, matches
from dialgym.tasks.visual_dialogue.captions import caption_likelihood
from dialgym.tasks.visual_dialogue.exact import ExactGuesser
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.questions import all_questions, text
from dialgym.tasks.visual_dialogue.scenes import COLUMNS, GROUNDS, ROWS, TIMES
from dialgym.tasks.visual_dialogue.understanding import parse
from dialgym.tasks.visual_dialogue.vocabulary import vocabulary
from tests.support.by_day import at_night
from tests.support.toy_visdial import PlainPool

BOOK = SceneBook(40)
PLAIN = SceneBook(40, vague=0.0)
QUESTIONS = all_questions()


def fits(thing, about):
    return all(want in (None, getattr(thing, name)) for name, want in about._asdict().items())


def holds(relation, thing, other):
    column = COLUMNS.index(thing.column) - COLUMNS.index(other.column)
    row = ROWS.index(thing.row) - ROWS.index(other.row)
    return {"left of": column < 0, "right of": column > 0, "behind": row < 0,
            "in front of": row > 0}[relation]  # fmt: skip


def truth(book, image, question):
    """The true answer, or None where the oracle does not know how to say it."""
    things = book.scenes.things(image)
    found = [thing for thing in things if fits(thing, question.about)]
    if question.attribute in ("ground", "time"):
        of = {"ground": GROUNDS[book.scenes.ground[image]], "time": TIMES[book.scenes.time[image]]}
        actual = of[question.attribute]
        return actual == question.value if question.value else actual
    if question.kind == "exist":
        return bool(found)
    if question.kind == "count":
        return len(found)
    if question.kind == "relation":
        others = [thing for thing in things if fits(thing, question.other)]
        if not found or not others:
            return None
        return any(holds(question.relation, a, b) for a in found for b in others)
    if len(found) != 1 or question.kind == "describe":
        return None
    if question.attribute == "place":
        place = (found[0].row, found[0].column)
        return question.value in place if question.value else place
    actual = getattr(found[0], question.attribute)
    return actual == question.value if question.value else actual


NUMBERS = ("none", "one", "two", "three", "four", "five")


def agrees(answer, actual):
    """Return True if an answer can mean the true one."""
    words = answer.replace(",", "").split()
    if actual is True:
        return words[0] in ("yes", "just", "there", "it") and "none" not in words
    if actual is False:
        return words[0] == "no" or "don't" in words or "none" in words
    if isinstance(actual, int):
        return NUMBERS[actual] in words or (actual == 0 and "any" in words)
    if isinstance(actual, tuple):
        return any(part in words for part in actual)
    return actual in words or f"{actual}en" in words


@pytest.mark.parametrize("image", range(0, 40, 3))
def test_what_is_said_is_the_case(image):
    checked = 0
    for question in QUESTIONS:
        answers, actual = PLAIN.answers.answers(question), truth(PLAIN, image, question)
        chances = answers.chances[answers.content[image]]
        said = [said for said, chance in zip(answers.texts, chances) if chance]
        assert said
        if actual is not None:
            assert all(agrees(each, actual) for each in said), (text(question), actual, said)
            checked += 1
    assert checked > 100


def test_chances_sum_to_one_and_texts_fit():
    known = set(vocabulary())
    for question in QUESTIONS:
        answers = BOOK.answers.answers(question)
        assert np.allclose(answers.chances.sum(1), 1)
        assert max(map(len, answers.texts)) <= BOOK.longest
        for said in answers.texts:
            assert len(said.split()) <= BOOK.most_words
            assert set(said.split()) <= known


@given(st.sampled_from(QUESTIONS))
@settings(max_examples=40)
def test_matches_are_those_of_the_things(question):
    found = matches(BOOK.scenes, question.about)
    for image in range(10):
        things = BOOK.scenes.things(image)
        assert found[image].sum() == sum(fits(thing, question.about) for thing in things)


def test_the_answerer_says_each_way_as_often_as_it_should():
    task = VisualDialogue({"name": "scenes", "scenes": 40, "vague": 0.2})
    state = task.begin(np.random.default_rng(0), {"image": 5})
    state.asked = "how many toys are there"
    answers = task.pool.answers.answers(parse(state.asked))
    rng, times = np.random.default_rng(1), 6000
    said = [task.answerer.reply(task, state, rng) for _ in range(times)]
    for place, way in enumerate(answers.texts):
        chance = answers.chances[answers.content[5], place]
        assert said.count(way) / times == pytest.approx(chance, abs=0.03)
    assert sum(said.count(way) for way in VAGUE) / times == pytest.approx(0.2, abs=0.03)
    state.asked = "do you like cheese"
    assert task.answerer.reply(task, state, rng) == "I can't tell"


def slow_posterior(book, caption, history):
    """Bayes' rule, a scene at a time."""
    weights = []
    for image in range(len(book)):
        part = book.scenes.part(image, image + 1)
        weight = caption_likelihood(part, caption)[0]
        for said, answer in history:
            question = parse(said)
            if question is None:
                continue
            answers = book.answers.answers(question)
            chances = dict(zip(answers.texts, answers.chances[answers.content[image]]))
            weight *= chances[answer]
        weights.append(weight)
    return np.array(weights) / sum(weights)


@given(st.integers(0, 39), st.integers(0, 2**32), st.integers(0, 6))
@settings(max_examples=30)
def test_the_posterior_is_that_of_a_slow_oracle(image, seed, turns):
    task = VisualDialogue({"name": "scenes", "scenes": 40}, mode="10_stop")
    rng = np.random.default_rng(seed)
    state = task.initial(rng, {"image": image})
    for _ in range(turns):
        if not state.over:
            asked = QUESTIONS[rng.integers(len(QUESTIONS))]
            task.speak(state, text(asked) if rng.random() < 0.9 else "hm", rng)
            task.speak(state, task.answerer.reply(task, state, rng), rng)
    expected = slow_posterior(task.pool, state.lines[0].text, state.history)
    found = task.posterior(state)
    assert np.allclose(found, expected)
    assert found[image] > 0
    above, own = (expected > expected[image] * (1 + 1e-9)).sum(), expected[image]
    alike = (np.abs(expected - own) <= 1e-9 * own).sum() - 1
    assert state.percentiles[-1] == pytest.approx(1 - (above + alike / 2) / 40)


@pytest.mark.parametrize("cutoff", [at_night(((2.0, 1.0),)), at_night(((1.0, 1.0),)), (1.0, 0.5)])
def test_the_posterior_can_be_trusted(cutoff):
    """The mean belief in the best scene is how often it is the true one, also where a dialogue
    would have ended had the one that the guesser ranks first been it. In a small pool that would
    depend on which caption each of the few scenes happens to have."""
    task = VisualDialogue("scenes", rounds=4, cutoff=cutoff)
    believed, right = [], []
    for seed in range(1250):
        rng = np.random.default_rng(seed)
        state = task.initial(rng)
        for _ in range(1 + seed % 3):
            if not state.over:
                task.speak(state, text(QUESTIONS[rng.integers(len(QUESTIONS))]), rng)
                task.speak(state, task.answerer.reply(task, state, rng), rng)
        if not state.over:
            posterior = task.posterior(state)
            best = posterior >= posterior.max() * (1 - 1e-9)
            believed.append(posterior.max())
            right.append(best[state.image] / best.sum())
    assert len(right) > 350
    assert np.mean(right) == pytest.approx(np.mean(believed), abs=0.03)


def test_the_rank_of_every_scene_is_that_of_each_in_turn():
    guesser = ExactGuesser(BOOK)
    history = (("how many toys are there", "three"), ("is it night", "no"))
    for n in range(3):
        every = guesser.percentiles_of_all(BOOK.captions[0], history[:n])
        held = [Held(BOOK.captions[0], history[:n], image) for image in range(40)]
        assert np.allclose(every, guesser.percentiles(held))


def test_what_cannot_have_been_said_tells_nothing():
    guesser = ExactGuesser(BOOK)
    before = guesser.posterior(BOOK.captions[0], ())
    for pair in (("is there a ball", "perhaps a bit"), ("hm", "yes"), ("is there a ball", "")):
        assert (guesser.posterior(BOOK.captions[0], (pair,)) == before).all()
    twice = (("is there a ball", "no"), ("is there a ball", "yes"))  # one of them is a lie
    assert np.allclose(
        guesser.posterior(BOOK.captions[0], twice), guesser.posterior(BOOK.captions[0], twice[:1])
    )
    assert (guesser.posterior(BOOK.captions[0], (("is there a ball", "No!"),)) != before).any()


def test_a_posterior_depends_on_the_dialogue_alone():
    """Whatever has been asked of the guesser before, and in a copy elsewhere."""
    history = (("how many toys are there", "three"), ("is it night", "no"))
    first, other = ExactGuesser(BOOK), ExactGuesser(BOOK)
    for i in range(700):
        first.posterior(f"caption {i}", ())
    held = [Held(BOOK.captions[i], history[:n], i) for i in range(5) for n in range(3)]
    copied = pickle.loads(pickle.dumps(first))
    assert (first.percentiles(held) == other.percentiles(held)).all()
    assert (copied.percentiles(held) == other.percentiles(held)).all()
    assert (other.percentiles(held[::-1])[::-1] == other.percentiles(held)).all()


def test_a_state_knows_its_posterior_and_the_callers_may_write_into_it():
    task = VisualDialogue({"name": "scenes", "scenes": 40})
    assert isinstance(task, ExactPosterior)
    state = task.initial(np.random.default_rng(0))
    assert task.hypotheses(state) == len(task.posterior(state)) == 40
    task.posterior(state)[:] = 0
    assert task.posterior(state).sum() == pytest.approx(1)


def test_the_questioner_is_given_what_the_guesser_imagines():
    task = VisualDialogue({"name": "scenes", "scenes": 40})
    state = task.initial(np.random.default_rng(0))
    expected = task.posterior(state) @ task.pool.features
    assert np.allclose(task.features(state, "system"), expected, atol=1e-6)
    assert (task.features(state, "user") == task.pool.features[state.image]).all()
    lines = task.transcript(state, "user")
    assert [line.text for line in lines if line.private] == list(task.pool.description(state.image))
    assert not any(line.private for line in task.transcript(state, "system"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ExactGuesser, "guesser 'exact': expected generated scenes; got PlainPool"),
        (RuleAnswerer, "answerer 'rules': expected generated scenes; got PlainPool"),
    ],
)
def test_rules_are_for_generated_scenes(make, message):
    with pytest.raises(ValueError, match=message):
        make(PlainPool())
