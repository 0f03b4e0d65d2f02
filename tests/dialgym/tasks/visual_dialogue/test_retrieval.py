"""Speakers and guesser of VisDial: an answer is one that people gave about that very image."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.visual_dialogue.guessers import Held, percentile_ranks
from dialgym.tasks.visual_dialogue.hashing import Hashing, inverse_frequencies, words_of
from dialgym.tasks.visual_dialogue.pool import SceneBook
from dialgym.tasks.visual_dialogue.retrieval import (
    ELSE,
    RetrievalAnswerer,
    RetrievalQuestioner,
    WordGuesser,
    kind,
)
from dialgym.tasks.visual_dialogue.visdial import VisDialPool
from tests.support.toy_visdial import EVASION, answers_of, state_of, toy_task, write_visdial

RNG = np.random.default_rng(0)


@pytest.fixture
def task(tmp_path):
    return toy_task(tmp_path)


def test_the_image_s_own_questions_get_their_answers(task):
    answerer = RetrievalAnswerer(task.pool)
    for image, dialogue in enumerate(task.pool.dialogues):
        said = [answerer.reply(task, state_of(image, (), q), RNG) for q, _ in dialogue.rounds]
        assert tuple(said) == answers_of(image)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("WHAT COLOR is the dog", "brown"),  # neither case nor marks count
        ("what color are the dogs?", "brown"),  # nor number
        ("is it a sunny picture?", "no"),  # nor words that say little
        ("can you see any dogs?", "yes, 1"),
        ("how many zebras are there?", "can't tell"),  # of the kind of "how many people"
        (
            "is the dog in the garden?",
            EVASION,
        ),  # nearest is "can you see a dog", whose options tell
        ("", "can't tell"),
        ("?!?", "can't tell"),
        ("\N{SNOWMAN}", "can't tell"),
    ],
)
def test_what_is_understood(task, asked, said):
    assert RetrievalAnswerer(task.pool, 0.75).answer(0, asked) == said


def test_a_question_of_another_kind_is_another_question(task):
    answerer = RetrievalAnswerer(task.pool)
    assert answerer.answer(0, "can you see people?") != "0"
    assert max(answerer.similarities(0, "where are the people?")) == 0
    assert [kind(text) for text in ("How many dogs?", "what dogs", "are there dogs")] == [
        "how many", "what", "",
    ]  # fmt: skip


def test_the_threshold_decides(task):
    asked = "is it a cloudy or sunny day?"
    similarity = max(RetrievalAnswerer(task.pool).similarities(1, asked))
    assert 0.2 < similarity < 0.9
    assert RetrievalAnswerer(task.pool, similarity - 0.01).answer(1, asked) == "yes"
    assert RetrievalAnswerer(task.pool, similarity + 0.01).answer(1, asked) == EVASION
    with pytest.raises(ValueError, match=r"expected 0 to 1; got 1\.5"):
        RetrievalAnswerer(task.pool, 1.5)


def test_similarity_is_the_cosine_of_tf_idf(task):
    """Against a dense computation with a vector for each text."""
    answerer, asked = RetrievalAnswerer(task.pool), "what color is the train and the dog?"
    known = [q for dialogue in task.pool.dialogues for q, _ in dialogue.rounds]
    documents = [{"color", *words_of(q)} & {"color", "sunny", "people", "dog"} for q in known]
    assert inverse_frequencies(documents)["dog"] == pytest.approx(np.log(33 / 3) + 1)  # in 2 of 32
    color, dog = np.log(33 / 9) + 1, np.log(33 / 3) + 1
    wanted = (color**2 + dog**2) / np.sqrt(color**2 + dog**2) / np.sqrt(color**2 + 2 * dog**2)
    assert answerer.similarities(0, asked)[0] == pytest.approx(wanted)


def test_an_image_without_a_dialogue_is_not_known_to_tell(task):
    bare = task.pool.dialogues[0]._replace(rounds=(), evasions=())
    task.pool.dialogues = (bare, *task.pool.dialogues[1:])
    assert RetrievalAnswerer(task.pool).answer(0, "is it sunny?") == "can't tell"


def test_the_questioner_asks_what_was_asked_about_alike_captions(task):
    questioner, history = RetrievalQuestioner(nearest=3), []
    for _ in range(6):
        asked = questioner.reply(task, state_of(0, history), RNG)
        assert asked not in [question for question, _ in history]
        history.append((asked, "yes"))
    own = RetrievalQuestioner(own=True)
    asked = [
        own.reply(task, state_of(2, [(q, a) for q, a in task.pool.dialogues[2].rounds[:n]]), RNG)
        for n in range(4)
    ]
    assert asked == [question for question, _ in task.pool.dialogues[2].rounds]
    everything = [turn for dialogue in task.pool.dialogues for turn in dialogue.rounds]
    assert RetrievalQuestioner().reply(task, state_of(0, everything), RNG) == ELSE


def test_words_rank_the_image_that_they_are_of(task):
    guesser = task.guesser
    talk = [Held(d.caption, d.rounds, i) for i, d in enumerate(task.pool.dialogues)]
    assert np.allclose(guesser.percentiles(talk), 1.0)
    nothing = guesser.percentiles([held._replace(history=()) for held in talk])
    assert np.allclose(nothing, 1 - 3.5 / 8)  # all eight alike: the mean rank
    wrong = guesser.percentiles([held._replace(image=(held.image + 1) % 8) for held in talk])
    assert (wrong < 1).all()
    slow = [
        percentile_ranks(-np.square(p - task.pool.features).sum(1)[None].round(6), np.array([0]))[0]
        for p in guesser.imagine(talk)
    ]
    fast = guesser.percentiles([held._replace(image=0) for held in talk])
    assert np.allclose(slow, fast)


def test_what_does_not_fit_is_told(tmp_path):
    scenes = SceneBook(2)
    for make in (RetrievalAnswerer, WordGuesser):
        with pytest.raises(ValueError, match=r"the images of VisDial.*got SceneBook"):
            make(scenes)
    np.save(tmp_path / "f.npy", np.eye(8))
    pool = VisDialPool(write_visdial(tmp_path), features=tmp_path / "f.npy")
    with pytest.raises(ValueError, match="features from a file, which words do not tell"):
        WordGuesser(pool)


ROUNDS = st.lists(st.tuples(st.text("ab c?", max_size=8), st.text("yno ", max_size=5)), max_size=4)


@given(ROUNDS, st.randoms())
def test_hashed_features_do_not_depend_on_the_order_of_rounds(rounds, random):
    hashing = Hashing([rounds, [("is it red?", "yes")]], 32)
    mixed = random.sample(rounds, len(rounds))
    one, other = hashing([rounds, mixed])
    assert np.allclose(one, other, atol=1e-6)
    assert np.isclose(np.linalg.norm(one), 1) or not one.any()


def test_an_answer_turns_the_features_of_its_question():
    hashing = Hashing([[("is it red?", "yes")], [("is it red?", "no")]], 256)
    yes, no = hashing([[("is it red?", "yes")], [("is it red?", "no")]])
    assert yes @ no < 0.6
    assert not hashing([[("unheard of", "entirely")]]).any()
    with pytest.raises(ValueError, match="a length of 1 or more"):
        Hashing([], 0)
