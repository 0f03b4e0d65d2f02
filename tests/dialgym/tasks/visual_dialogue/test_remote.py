"""Remote guesser and answerer: as if the model were here, and one request for a question."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

import numpy as np
import pytest

from dialgym.tasks.visual_dialogue.client import RefusedError, RemoteError
from dialgym.tasks.visual_dialogue.guessers import Held, make_guesser
from dialgym.tasks.visual_dialogue.remote import (
    Remote,
    RemoteAnswerer,
    RemoteGuesser,
    base_url,
    wire_history,
)
from dialgym.tasks.visual_dialogue.retrieval import RetrievalAnswerer
from dialgym.tasks.visual_dialogue.serving import Bots
from tests.support.faulty_server import faulty_server, says
from tests.support.toy_visdial import ToyTask, state_of, toy_task
from tests.support.visual_server import visual_server
from tests.support.waiting import HANG_GUARD

RNG = np.random.default_rng(0)
QUICK = {"timeout": 2, "retries": 1, "backoff": 0.01}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return toy_task(tmp_path_factory.mktemp("data"))


class Recording(Bots):
    """Writes down what it is asked."""

    def __init__(self, task) -> None:
        super().__init__(task, RetrievalAnswerer(task.pool))
        self.asked = []

    def serve(self, asks):
        self.asked += asks
        return super().serve(asks)


@pytest.fixture
def served(task):
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")
    bots = Recording(task)
    with visual_server(bots) as url:
        yield bots, url


def play(task, answerer, guesser, image):
    """Answers and percentiles of a dialogue, asked for in the order of a task."""
    state = state_of(image)
    said, ranks = [], list(guesser.percentiles([task.held(state)]))
    for question, _ in task.pool.dialogues[image].rounds:
        state.asked = question
        said.append(answerer.reply(task, state, RNG))
        state.history += ((question, said[-1]),)
        ranks += list(guesser.percentiles([task.held(state)]))
    return said, ranks


def test_the_same_as_here_by_one_request_a_question(task, served):
    bots, url = served
    guesser = make_guesser(f"remote:{url}", task.pool)
    away = ToyTask(task.pool, guesser)
    here = play(task, RetrievalAnswerer(task.pool), task.guesser, 3)
    there = play(away, RemoteAnswerer(task.pool, url + "/step_rank"), guesser, 3)
    assert there[0] == here[0]
    assert np.allclose(there[1], here[1], atol=1e-12)
    assert len(bots.asked) == 1 + 4  # the start, and each question
    play(away, RemoteAnswerer(task.pool, url), guesser, 3)
    assert len(bots.asked) == 1 + 4 + 4  # the start is remembered
    guesser.percentiles([task.held(state_of(3, list(zip(*[iter("abcdef")] * 2))))])
    assert len(bots.asked) == 1 + 4 + 4 + 3  # a dialogue that was never asked about


def test_an_answerer_elsewhere_and_a_guesser_here(task, served):
    bots, url = served
    answerer = RemoteAnswerer(task.pool, url)
    assert play(task, answerer, task.guesser, 6) == play(
        task, RetrievalAnswerer(task.pool), task.guesser, 6
    )
    assert {ask.endpoint.measure for ask in bots.asked} == {""}


def test_many_dialogues_at_a_time(task, served):
    _, url = served
    guesser, answerer = RemoteGuesser(task.pool, url), RemoteAnswerer(task.pool, url)
    away = ToyTask(task.pool, guesser)
    states = [state_of(image, (), "is it sunny?") for image in range(8)] * 5
    said = answerer.reply_many(away, states, [RNG] * 40)
    assert said == ["no", "yes"] * 20
    held = [Held(task.pool.captions[s.image], (("is it sunny?", "no"),), s.image) for s in states]
    assert np.allclose(guesser.percentiles(held), task.guesser.percentiles(held))
    assert guesser.percentiles([]).shape == (0,)


def test_a_copy_asks_for_itself(task, served):
    _, url = served
    copy = pickle.loads(pickle.dumps(RemoteGuesser(task.pool, url)))
    held = [Held(task.pool.captions[0], (), 0)]
    assert np.allclose(copy.percentiles(held), task.guesser.percentiles(held))


def test_a_server_started_again_goes_on_with_every_dialogue(task):
    """It is away between two questions of each dialogue, and nothing is lost."""
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")
    bots = Recording(task)
    with visual_server(bots) as url:
        guesser = RemoteGuesser(task.pool, url, timeout=HANG_GUARD, retries=30, backoff=0.05)
        away = ToyTask(task.pool, guesser)
        answerer = RemoteAnswerer(task.pool, url)
        states = [state_of(image, (), "is it sunny?") for image in range(8)]
        guesser.percentiles([task.held(state) for state in states])
        first = answerer.reply_many(away, states, [RNG] * 8)
    for state, said in zip(states, first):
        state.history, state.asked = ((state.asked, said),), "how many people are there?"
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(answerer.reply_many, away, states, [RNG] * 8)
        with visual_server(bots, port=int(url.rpartition(":")[2])):
            assert waiting.result(HANG_GUARD) == [str(image) for image in range(8)]
    for state, said in zip(states, waiting.result()):
        state.history += ((state.asked, said),)
    held = [task.held(state) for state in states]
    assert np.allclose(guesser.percentiles(held), task.guesser.percentiles(held))


def test_an_error_of_one_dialogue_leaves_the_others_theirs(task, served):
    """All that could be answered is remembered, so that they go on without being asked again."""
    bots, url = served
    guesser = RemoteGuesser(task.pool, url, **QUICK)
    held = [task.held(state_of(image, [("is it sunny?", "no")])) for image in range(8)]
    bad = held[2]._replace(caption="x" * 3000)
    with pytest.raises(RefusedError, match="caption: expected 2000 characters at most; got 3000"):
        guesser.percentiles([*held[:2], bad, *held[3:]])
    asked = len(bots.asked)
    assert np.allclose(guesser.percentiles(held[3:]), task.guesser.percentiles(held[3:]))
    assert len(bots.asked) == asked


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'"yes"', r"step_rank: expected \[answer, change of percentile\]; got 'yes'"),
        (b'["yes"]', r"expected \[answer, change of percentile\]"),
        (b"[3, 0.5]", "expected a text; got '3'"),
        (b'["yes", "0.5"]', "expected a finite number; got '0.5'"),
        (b'["yes", NaN]', "expected a finite number; got 'nan'"),
        (b'["yes", true]', "expected a finite number; got 'True'"),
        (b"{}", "Is it a server of visual dialogue?"),
    ],
)
def test_an_answer_of_another_form_is_told(task, body, message):
    with faulty_server(says(body)) as (url, _):
        remote = Remote(task.pool, url, **QUICK)
        with pytest.raises(RemoteError, match=message):
            remote.answer(Held("a", (), 0), "is it sunny?")


def test_what_is_sent_is_the_protocol_s(task):
    with faulty_server(says(b'["yes", 0.25]')) as (url, requests):
        remote = Remote(task.pool, url, **QUICK)
        held = Held("a dog & cat", (("is it sunny?", "100% + more"),), 1)
        assert remote.answer(held, "a=b?") == "yes"
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /step_rank ")
    fields = parse_qs(body.decode(), strict_parsing=True)
    assert json.loads(fields["history"][0]) == [
        {"speaker": "question", "text": "is it sunny?"},
        {"speaker": "answer", "text": "100% + more"},
        {"speaker": "question", "text": "a=b?"},
    ]
    assert fields["caption"] == ["a dog & cat"]
    assert json.loads(fields["generation_kwargs"][0]) == {"inference": "greedy", "beamSize": 1}
    sent = np.array(json.loads(fields["img_features"][0]), np.float32)
    assert np.array_equal(sent, task.pool.features[1])


def test_addresses_and_settings(task):
    assert base_url("http://a:5000/") == base_url("http://a:5000/step_rank") == "http://a:5000"
    assert base_url("http://a/x/fetch_reward") == "http://a/x"
    assert wire_history([]) == "[]"
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        make_guesser("remote:nowhere", task.pool)
    with pytest.raises(ValueError, match="workers of a remote model must be a whole number from 1"):
        Remote(task.pool, "http://a", workers=0)
