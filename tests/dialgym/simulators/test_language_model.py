"""Language models behind a service as policies and as simulators: asked in rounds, recorded."""

import pickle
import re

import numpy as np
import pytest

import dialgym
from dialgym.experiments import evaluate
from dialgym.registry import entry_of, make_task
from dialgym.rollouts.player import Player
from dialgym.simulators import EachReplies
from dialgym.simulators.language_model import LanguageModelSpeaker, heard, language_model
from dialgym.tasks.wordle import Wordle
from dialgym.trust import check_names
from tests.support.chat_server import chat_server

pytest.importorskip("httpx", reason="the extra lm")


def task_of(env):
    return make_task(entry_of(env), {})


def turn_of(body) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def guesses(body) -> str:
    """A word of the brief, by the turn; with its reasoning, as a model writes it."""
    brief = body["messages"][0]["content"]
    words = re.findall(r"\b[a-z]{5}\b", brief.partition("one of")[2])
    return f"<think>hm, {words[0]}?</think>\n {words[3 * turn_of(body) % len(words)].upper()} "


class Guesses:
    """The same rule in process."""

    def reply(self, task, state, rng):
        party = task.speaker(state)
        lines = [line for line in task.transcript(state, party) if line.speaker == party]
        turns = [{"role": "assistant"}] * len(lines)
        brief = {"role": "system", "content": task.brief(state, party)}
        return heard(guesses({"messages": [brief, *turns]}).partition("</think>")[2], task, party)


def talks(body) -> str:
    """A user's or system's words that show which request they answer."""
    return f"i want food {body['seed'] % 1000}"


def played(policy, env="Wordle-20-v0", count=12, kwargs=None, **settings):
    player = Player(env, policy, kwargs, policy_kwargs=settings, record=True)
    batches = [*player.play([(0, i) for i in range(count)])]
    texts = [text for batch in batches for text in batch.turns.text]
    return np.concatenate([batch.returns for batch in batches]).tolist(), texts


@pytest.mark.parametrize("concurrency", [1, 64])
def test_a_policy_equals_its_rule_dialogue_by_dialogue(concurrency):
    expected = played(Guesses())
    with chat_server(guesses) as server:
        given = {"base_url": server.url, "concurrency": concurrency}
        assert played("openai:stub", **given) == expected
    assert server.most <= concurrency
    assert {body["model"] for body in server.bodies} == {"stub"}


def test_it_is_asked_once_a_round():
    calls = []

    class Counted(LanguageModelSpeaker):
        def reply_many(self, task, states, rngs):
            calls.append(len(states))
            return super().reply_many(task, states, rngs)

    with chat_server(guesses) as server:
        played(Counted({"model": "stub", "base_url": server.url}), count=64)
    turns = task_of("Wordle-20-v0").facts.turn_limit
    assert calls[0] == 64
    assert len(calls) <= turns
    assert sum(calls) == len(server.bodies)


def test_evaluate_takes_it():
    with chat_server(guesses) as server:
        given = {"base_url": server.url}
        result = evaluate("openai:stub", "Wordle-20-v0", 5, [0], policy_kwargs=given)
    assert [*result.by_id] == ["dialgym/Wordle-20-v0"]
    assert result.policy == "openai:stub"


@pytest.mark.parametrize("rounds", [True, False])
def test_a_recorded_user_is_replayed_without_a_server(tmp_path, rounds):
    env, tape, count = "SlotFilling-v0", str(tmp_path / "tape"), 4

    def play(**settings):
        simulator = {"name": "openai:stub", "tape": {"path": tape, **settings}, "base_url": url}
        policy = Together() if rounds else Plain()
        return played(policy, env, count, {"simulator": simulator, "language": "english"})

    with chat_server(talks) as server:
        url = server.url
        first = play()
        asked = len(server.bodies)
        assert play() == first
        assert len(server.bodies) == asked
    assert asked == len({body["seed"] for body in server.bodies})
    assert play(mode="replay") == first


class Plain:
    def reply(self, task, state, rng):
        return "hello"


class Together(EachReplies, Plain):
    reply = Plain.reply


def test_it_sees_what_its_party_may_know():
    seen = []

    def answers(body):
        seen.append(body["messages"])
        return "no"

    task = task_of("TwentyQuestions-16-v0")
    state = task.initial(np.random.default_rng(0))
    task.speak(state, "is it alive?", np.random.default_rng(0))
    with chat_server(answers) as server:
        user = language_model("openai:stub", base_url=server.url, answer="last line")
        assert user.reply(task, state, np.random.default_rng(1)) == "no"
    system, asked = seen[0]
    assert system["content"].startswith(task.brief(state, "user"))
    assert system["content"].endswith("Only the last line of what you write is said.")
    assert asked == {"role": "user", "content": "is it alive?"}


def test_words_are_those_of_the_task():
    task = Wordle()
    assert heard(" CRANE \n", task, "system") == "crane"
    assert heard("cr\u00e4ne", task, "system") == "cr\N{REPLACEMENT CHARACTER}ne"
    assert len(heard("a" * 100, task, "system")) == task.facts.limit("system")


def test_a_pickled_copy_asks_for_itself():
    with chat_server(guesses) as server:
        policy = language_model("openai:stub", base_url=server.url)
        first = played(policy, count=2)
        assert played(pickle.loads(pickle.dumps(policy)), count=2) == first


def test_a_dead_service_is_one_clear_error():
    dead = {"base_url": "http://127.0.0.1:9/v1", "retries": 0}
    with pytest.raises(ConnectionError, match=r"row 0.*turn 0 of the system.*127\.0\.0\.1:9"):
        played("openai:stub", count=2, **dead)


@pytest.mark.parametrize(
    ("settings", "told"), [({"base_urll": "x"}, "base_url"), ({"answer": "loud"}, "whole")]
)
def test_settings_that_cannot_be(settings, told):
    with pytest.raises(ValueError, match=told):
        language_model("openai:stub", **settings)
    with pytest.raises(ValueError, match=told):
        dialgym.make("Wordle-20-v0", learner="user", simulator={"name": "openai:m", **settings})


def test_a_file_may_not_name_one():
    with pytest.raises(ValueError, match="openai:stub"):
        check_names({"simulator": "openai:stub"}, "a file")
