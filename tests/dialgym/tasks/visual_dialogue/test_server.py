"""The server: its protocol as a client of a few lines meets it, bad requests, failing models.

`post` below knows the reference's description of the protocol and nothing of our client.
"""

import json
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")

from dialgym.io import http_server as serving
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.retrieval import RetrievalAnswerer, RetrievalQuestioner
from dialgym.tasks.visual_dialogue.serving import Bots
from tests.support.toy_visdial import ToyTask, answers_of, toy_task
from tests.support.visual_server import visual_server
from tests.support.waiting import HANG_GUARD


def post(url, endpoint, **fields):
    """Status and JSON of an answer."""
    form = urllib.parse.urlencode(fields).encode()
    try:
        with urllib.request.urlopen(f"{url}/{endpoint}", form, timeout=HANG_GUARD) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def fields_of(task, image, history):
    features = task.pool.features[image]
    features = features / np.linalg.norm(features)  # by the client, as the reference says
    return {
        "history": json.dumps([{"speaker": s, "text": t} for s, t in history]),
        "caption": task.pool.captions[image],
        "img_features": json.dumps(features.tolist()),
        "generation_kwargs": json.dumps({"inference": "greedy", "beamSize": 1}),
    }


def turns(rounds):
    return [pair for q, a in rounds for pair in (("question", q), ("answer", a))]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    task = toy_task(tmp_path_factory.mktemp("data"))
    bots = Bots(task, RetrievalAnswerer(task.pool), RetrievalQuestioner())
    with visual_server(bots) as url:
        yield task, url


def test_a_client_of_a_few_lines_plays_a_dialogue(served):
    task, url = served
    image, history = 5, []
    status, percentile = post(url, "fetch_reward_rank", **fields_of(task, image, history))
    assert status == 200
    assert percentile == pytest.approx(1 - 3.5 / 8)  # nothing said: all are alike
    for round_, (question, _) in enumerate(task.pool.dialogues[image].rounds):
        history.append(("question", question))
        status, (answer, change) = post(url, "step_rank", **fields_of(task, image, history))
        assert (status, answer) == (200, answers_of(image)[round_])
        history.append(("answer", answer))
        percentile += change
        rounds = task.pool.dialogues[image].rounds[: round_ + 1]
        held = Held(task.pool.captions[image], rounds, image)
        assert percentile == pytest.approx(task.guesser.percentiles([held])[0])
    assert percentile == 1


def test_distance_falls_by_what_step_says(served):
    task, url = served
    rounds = task.pool.dialogues[2].rounds
    _, start = post(url, "fetch_reward", **fields_of(task, 2, []))
    assert start == pytest.approx(1 / 512)  # |0 - f|^2 over the number of features
    said, change = post(url, "step", **fields_of(task, 2, turns(rounds)[:1]))[1]
    assert said == rounds[0][1]
    imagined = task.guesser.imagine([Held("", rounds[:1], 2)])[0]
    assert change == pytest.approx(
        start - np.square(imagined - task.pool.features[2]).mean(), abs=1e-7
    )
    assert post(url, "fetch_reward", **fields_of(task, 2, turns(rounds[:1])))[1] == change


def test_each_endpoint_alone(served):
    task, url = served
    rounds = task.pool.dialogues[2].rounds
    fields = fields_of(task, 2, turns(rounds)[:3])
    assert post(url, "fetch_a_bot_response", **fields) == (200, rounds[1][1])
    _, (said, change) = post(url, "step_rank", **fields)
    after = fields_of(task, 2, [*turns(rounds)[:3], ("answer", said)])
    assert post(url, "fetch_reward_rank", **after) == (200, change)
    fields = fields_of(task, 2, turns(rounds[:1]))
    del fields["img_features"]  # the questioner has not seen the image
    status, asked = post(url, "fetch_q_bot_response", **fields)
    assert status == 200
    assert asked in [question for d in task.pool.dialogues for question, _ in d.rounds]


def test_what_it_serves_is_told(served):
    task, url = served
    with urllib.request.urlopen(url, timeout=HANG_GUARD) as answer:
        told = json.load(answer)
    assert told["images"] == 8
    assert told["features"] == task.pool.features.shape[1] == 512
    assert len(told["endpoints"]) == 6


QUESTION = [{"speaker": "question", "text": "is it sunny?"}]
BAD = {
    "no history": ({"history": None}, "history: missing"),
    "no caption": ({"caption": None}, "caption: missing"),
    "no features": ({"img_features": None}, "img_features: missing"),
    "no JSON": ({"history": "[{"}, "history: expected JSON"),
    "deep": ({"history": "[" * 100_000}, "history: expected JSON"),
    "no list": ({"history": "{}"}, "history: expected a list"),
    "empty": ({"history": "[]"}, "history: expected a question at its end"),
    "strings": ({"history": '["is it sunny?"]'}, "history[0]: expected an object"),
    "answer first": (
        {"history": json.dumps([{"speaker": "answer", "text": "yes"}])},
        "history[0]: expected an object with speaker 'question'",
    ),
    "two questions": (
        {"history": json.dumps(QUESTION * 2)},
        "history[1]: expected an object with speaker 'answer'",
    ),
    "no text": ({"history": '[{"speaker": "question"}]'}, "history[0]: expected a string"),
    "number as text": (
        {"history": '[{"speaker": "question", "text": 3}]'},
        "history[0]: expected a string",
    ),
    "long text": (
        {"history": json.dumps([{"speaker": "question", "text": "x" * 2001}])},
        "history[0]: expected 2000 characters at most",
    ),
    "long history": ({"history": json.dumps(QUESTION * 201)}, "history: expected 200 entries"),
    "long caption": ({"caption": "x" * 2001}, "caption: expected 2000 characters"),
    "short features": ({"img_features": "[1, 2]"}, "img_features: expected 512 numbers; got 2"),
    "no features at all": ({"img_features": "[]"}, "img_features: expected finite numbers"),
    "words as features": ({"img_features": '["a"]'}, "img_features: expected a list of numbers"),
    "truths as features": ({"img_features": "[true]"}, "img_features: expected a list of numbers"),
    "nested features": ({"img_features": "[[1]]"}, "img_features: expected a list of numbers"),
    "NaN": ({"img_features": json.dumps([float("nan")] * 512)}, "expected finite numbers"),
    "huge": ({"img_features": json.dumps([1e300] * 512)}, "expected finite numbers"),
    "huger": ({"img_features": f"[{'9' * 400}]"}, "expected finite numbers"),
    "zeros": ({"img_features": json.dumps([0] * 512)}, "expected finite numbers that are not all"),
    "no image": ({"img_features": json.dumps([1.0] * 512)}, "of none of the 8 images"),
    "kwargs": ({"generation_kwargs": "3"}, "generation_kwargs: expected an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_told_what_is_wrong(served, name):
    task, url = served
    change, message = BAD[name]
    fields = {**fields_of(task, 0, [("question", "is it sunny?")]), **change}
    fields = {key: value for key, value in fields.items() if value is not None}
    status, found = post(url, "step_rank", **fields)
    assert status == 400
    assert message in found["detail"]
    assert "Traceback" not in found["detail"]


def test_a_history_that_ends_with_a_question_has_no_reward_yet(served):
    task, url = served
    fields = fields_of(task, 0, [("question", "is it sunny?")])
    status, found = post(url, "fetch_reward_rank", **fields)
    assert (status, found["detail"]) == (
        400, "history: expected an answer at its end; got a question."
    )  # fmt: skip


def raw(url, request: bytes) -> bytes:
    """All that the server says to some bytes."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_GUARD) as connection:
        connection.sendall(request)
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


def form(body: bytes, path: bytes = b"/step_rank", method: bytes = b"POST", length=None) -> bytes:
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    return head % (method, path, len(body) if length is None else length) + body


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (form(b""), 400),
        (form(b"\xff\xfe"), 400),
        (form(b"history=%FF"), 400),
        (form(b"history=[]&history=[]"), 400),
        (form(b"a=1&" * 50), 400),
        (form(b"", b"/nothing"), 404),
        (form(b"", method=b"GET"), 405),
        (form(b"a" * (4 * 2**20 + 1)), 413),
        (b"nothing of HTTP\r\n\r\n", 400),
    ],
)
def test_bytes_of_any_kind_get_a_status_below_500(served, request_, status):
    task, url = served
    answer = raw(url, request_)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Traceback" not in answer
    fields = fields_of(task, 0, [("question", "is it sunny?")])
    assert post(url, "step_rank", **fields)[0] == 200  # and it goes on


@pytest.mark.parametrize("path", ["", "step_rank"])
@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Host": "evil.example"}, "not called 'evil.example'"),
        ({"Host": "127.0.0.1.evil.example:5000"}, "--allow-host NAME"),
        ({"Origin": "http://evil.example"}, "asked by another site"),
        ({"Origin": "http://["}, "asked by another site"),
        ({"Sec-Fetch-Site": "cross-site"}, "asked by another site"),
    ],
)
def test_foreign_hosts_and_sites_are_refused(served, path, headers, message):
    _, url = served
    request = urllib.request.Request(f"{url}/{path}", b"history=[]" if path else None, headers)
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(request, timeout=HANG_GUARD)
    assert message in json.load(refused.value)["detail"]


def test_a_server_can_have_further_names(tmp_path):
    bots = Bots(task := toy_task(tmp_path), RetrievalAnswerer(task.pool))
    with visual_server(bots, callers=serving.Callers(["0.0.0.0", "gpu.example"])) as url:
        for host, status in [("gpu.example:5000", 200), ("localhost", 200), ("0.0.0.0", 403)]:
            request = urllib.request.Request(url, headers={"Host": host})
            try:
                found = urllib.request.urlopen(request, timeout=HANG_GUARD).status
            except urllib.error.HTTPError as error:
                found = error.code
            assert found == status, host


def test_a_client_that_hangs_up_harms_nobody(served):
    task, url = served
    host, port = url.removeprefix("http://").split(":")
    fields = fields_of(task, 0, [("question", "is it sunny?")])
    body = urllib.parse.urlencode(fields).encode()
    for sent in (form(body)[:50], form(body[:100], length=len(body)), form(body)):
        with socket.create_connection((host, int(port)), timeout=HANG_GUARD) as connection:
            connection.sendall(sent)
    assert post(url, "step_rank", **fields)[0] == 200


def test_a_request_that_never_comes_whole_is_given_up(served, monkeypatch):
    _, url = served
    monkeypatch.setattr(serving, "PATIENCE", 0.1)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_GUARD) as connection:
        connection.sendall(form(b"history=", length=1000))
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


class Counting(ToyTask):
    """Counts how many dialogues are ranked at a time; begins once `requests` have come in."""

    def __init__(self, task, requests=0, fails_at=None) -> None:
        super().__init__(task.pool, self)
        self.inner, self.fails_at, self.requests = task.guesser, fails_at, requests
        self.batches, self.may_go_on = [], threading.Event()

    def bots(self) -> Bots:
        bots = Bots(self, RetrievalAnswerer(self.pool))
        place_of = bots.image

        def image(features):  # asked once by each request about another image
            self.requests -= 1
            if self.requests <= 0:
                self.may_go_on.set()
            return place_of(features)

        bots.image = image
        return bots

    def percentiles(self, dialogues):
        assert self.may_go_on.wait(60)
        self.batches.append(len(dialogues))
        if any(held.image == self.fails_at for held in dialogues):
            raise RuntimeError("the network is on fire")
        return self.inner.percentiles(dialogues)


def step_in_all(task, url):
    """One request about each image, all at once."""

    def ask(image):
        return post(url, "step_rank", **fields_of(task, image, [("question", "is it sunny?")]))

    return ThreadPoolExecutor(8).map(ask, range(8))


def test_requests_are_computed_together(served):
    task, _ = served
    counting = Counting(task, requests=8)
    with visual_server(counting.bots(), max_batch=4) as url:
        assert [status for status, _ in step_in_all(task, url)] == [200] * 8
    # the first ones found nobody waiting; the others had to wait, and came four at a time
    assert sum(counting.batches) == 16  # before and after the answer
    assert max(counting.batches) == 8
    assert len(counting.batches) <= 3


def test_a_model_that_fails_for_one_serves_the_others(served):
    task, _ = served
    counting = Counting(task, requests=8, fails_at=3)
    with visual_server(counting.bots()) as url:
        for image, (status, found) in enumerate(step_in_all(task, url)):
            assert status == (500 if image == 3 else 200)
            if image == 3:
                assert found == {"detail": "the model failed: RuntimeError: the network is on fire"}


def test_who_is_not_there_is_not_served(served):
    task, _ = served
    with visual_server(Counting(task).bots()) as url:
        fields = fields_of(task, 0, [("question", "is it sunny?")])
        assert post(url, "fetch_q_bot_response", **fields)[0] == 404  # no questioner
        assert post(url, "step", **fields)[0] == 404  # a guesser that imagines no features
        assert post(url, "step_rank", **fields)[0] == 200


def test_too_many_requests_are_turned_away(served):
    task, _ = served
    with visual_server(Counting(task, requests=8).bots(), waiting=1) as url:
        found = list(step_in_all(task, url))
    assert {status for status, _ in found} == {200, 503}
    assert {"detail": "too many requests are waiting; try again later."} in [f for _, f in found]
