"""Language models behind a service as policies and as simulators: asked in rounds, recorded."""

import multiprocessing
import pickle
import re
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import dialgym
from dialgym.datasets import collect
from dialgym.datasets.collector import Folder
from dialgym.errors import ServiceError
from dialgym.experiments import Result, evaluate
from dialgym.io.chat_service import CompletionRefusedError
from dialgym.io.model_settings import SPENT, BudgetSpentError
from dialgym.io.tape import Tape, TapeMissError
from dialgym.registry import entry_of, make_task
from dialgym.rollouts.player import Player
from dialgym.simulators import EachReplies
from dialgym.simulators.language_model import LanguageModelSpeaker, language_model
from dialgym.simulators.model_prompt import PromptForm
from dialgym.tasks.wordle import Wordle
from dialgym.trust import check_names
from tests.support.chat_server import chat_server
from tests.support.commands import fail

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
        return PromptForm().heard(guesses({"messages": [brief, *turns]}), task, party)


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


def test_evaluate_takes_it_and_counts_what_was_asked(tmp_path):
    with chat_server(guesses) as server:
        given = {"base_url": server.url, "temperature": 0}
        result = evaluate("openai:org/stub", "Wordle-20-v0", 5, [0], policy_kwargs=given)
        again = evaluate({"model": "org/stub", **given}, "Wordle-20-v0", 5, [0])
        warm = evaluate({"name": "openai:org/stub", "base_url": server.url}, "Wordle-20-v0", 5, [0])
        count = len(server.bodies) // 3
    assert [*result.by_id] == ["dialgym/Wordle-20-v0"]
    assert result.policy == "openai:org/stub"
    assert result.usage == {
        "requests": count,
        "prompt_tokens": 10 * count,
        "answer_tokens": 2 * count,
        "not_understood": 5,  # each dialogue begins with "these", which is none of the words
    }
    assert again.as_dict() == result.as_dict()
    assert result.policy_kwargs["host"] == "127.0.0.1"
    assert warm.policy_kwargs["sampling"] != result.policy_kwargs["sampling"]
    said = f"{count} requests, 5 not understood, {10 * count} + {2 * count} tokens"
    assert said in result.to_markdown()
    result.to_json(tmp_path / "result.json")
    assert Result.from_json(tmp_path / "result.json").usage == result.usage


def test_a_result_names_the_models_that_took_part_and_their_tapes(tmp_path):
    tape = str(tmp_path / "tape")

    def play(**settings):
        lm = {"model": "stub", "base_url": server.url, "record": tape, **settings}
        return evaluate("random", "SlotFilling-v0", 2, [0], {"simulator": {"lm": lm}})

    with chat_server(talks) as server:
        result, hurried = play(), play(persona="You are in a hurry.")
    assert list(result.models) == ["simulator"]
    found, other = result.models["simulator"], hurried.models["simulator"]
    assert (found["name"], found["host"]) == ("openai:stub", "127.0.0.1")
    assert other["tape"] == Tape(tape, "replay").digest != found["tape"]
    assert other["sampling"] != found["sampling"]
    result.to_json(tmp_path / "result.json")
    assert Result.from_json(tmp_path / "result.json").models == result.models


def test_what_worker_processes_ask_is_counted_here(tmp_path):
    before = SPENT.counts()
    with chat_server(talks) as server:
        lm = {"lm": {"model": "stub", "base_url": server.url}}
        made = {"learner": "user", "simulator": lm}  # the model speaks first
        pool = dialgym.make_vec("TwentyQuestions-8-v0", num_envs=4, workers=2, **made)
        pool.reset(seed=0)
        pool.close()
        assert SPENT.since(before)["requests"] == len(server.bodies) == 4
        given = {"name": "openai:stub", "base_url": server.url}
        collect("TwentyQuestions-8-v0", given, 4, path=tmp_path / "data", workers=1)
    found = SPENT.since(before)
    assert found["requests"] == len(server.bodies) > 4
    assert found["prompt_tokens"] == 10 * found["requests"]


def test_progress_is_told_in_each_round():
    told = []
    with chat_server(guesses) as server:
        given = {"base_url": server.url}
        evaluate("openai:stub", "Wordle-20-v0", 6, [0], policy_kwargs=given, report=told.append)
    assert sum(told) == 6
    assert 0 in told


@pytest.mark.parametrize("learner", ["system", "user"])
def test_a_spent_budget_is_one_clear_error(learner):
    with chat_server(talks) as server:
        lm = {"name": "openai:stub", "base_url": server.url, "budget": {"requests": 5}}
        policy, kwargs = (lm, {}) if learner == "system" else ("random", {"simulator": lm})
        with pytest.raises(BudgetSpentError, match=r"^budget: 5 of 5 requests are spent"):
            evaluate(policy, "TwentyQuestions-8-v0", 4, [0], {"learner": learner, **kwargs})
    assert len(server.bodies) == 5


def test_a_collection_goes_on_where_its_budget_ended(tmp_path):
    def gather(path, **more):
        given = {"name": "openai:stub", "base_url": server.url, **more}
        return collect(
            "Wordle-20-v0", given, 6, path=path, num_envs=2, shard_size=6, policy_kwargs=None
        )

    with chat_server(guesses) as server:
        whole = gather(tmp_path / "whole")
        asked = len(server.bodies)
        with pytest.raises(BudgetSpentError):
            gather(tmp_path / "cut", budget={"requests": asked - 3})
        kept = Folder(tmp_path / "cut").files()
        assert [*kept] == [range(4)]
        assert gather(tmp_path / "cut", retries=1).table.equals(whole.table)
        assert len(server.bodies) < asked + asked - 3 + asked


def test_the_command_line_stops_with_one_line_and_the_way_on(tmp_path):
    folder = str(tmp_path / "dialogues")
    with chat_server(guesses) as server:
        words = ["collect", "Wordle-20-v0", "--policy", "openai:stub", "--out", folder, "-n", "4"]
        error = fail(*words, "-p", f"base_url={server.url}", "-p", "budget={requests: 3}")
    assert error.count("error:") == 1
    assert "3 of 3 requests are spent" in error
    assert "Go on with: dialgym" in error


FORK = multiprocessing.get_context("fork")


def test_a_forked_process_asks_for_itself():
    def talk(connection):
        connection.send(played(policy, count=3))

    with chat_server(guesses) as server:
        policy = language_model("openai:stub", base_url=server.url)
        first = played(policy, count=3)  # the event loop runs
        mine, its = FORK.Pipe()
        process = FORK.Process(target=talk, args=(its,), daemon=True)
        process.start()
        answered = mine.poll(120)  # a child without a loop would wait for ever
        process.kill()
        process.join()
        assert answered
        assert mine.recv() == first
        assert played(policy, count=3) == first


def test_subprocesses_of_a_vector_env_ask_for_themselves():
    with chat_server(talks) as server:
        user = {"name": "openai:stub", "base_url": server.url}
        made = {"simulator": user, "language": "english"}
        one = dialgym.make("SlotFilling-utterance-v0", **made)
        opening, _ = one.reset(seed=0)  # a loop runs in the parent
        make = partial(dialgym.make, "SlotFilling-utterance-v0", **made)
        pool = AsyncVectorEnv([make, make], shared_memory=False, context="fork")
        try:
            assert pool.reset(seed=[0, 0])[0] == (opening, opening)
        finally:
            pool.close(terminate=True)


@pytest.mark.parametrize("rounds", [True, False])
def test_a_recorded_user_is_replayed_without_a_server(tmp_path, rounds):
    env, tape, count = "SlotFilling-v0", str(tmp_path / "tape"), 4

    def play(**settings):
        simulator = {"name": "openai:stub", **settings, "base_url": url}
        policy = Together() if rounds else Plain()
        return played(policy, env, count, {"simulator": simulator, "language": "english"})

    with chat_server(talks) as server:
        url = server.url
        first = play(record=tape)
        asked = len(server.bodies)
        assert play(record=tape) == first
        assert len(server.bodies) == asked
    assert asked == len({body["seed"] for body in server.bodies})
    assert play(replay=tape) == first


class Plain:
    def reply(self, task, state, rng):
        return "hello"


class Together(EachReplies, Plain):
    reply = Plain.reply


def test_a_recorded_user_is_asked_in_rounds_by_whomever_it_talks_to(tmp_path):
    asked_at_once = []

    class Counted(LanguageModelSpeaker):
        def reply_many(self, task, states, rngs):
            asked_at_once.append(len(states))
            return super().reply_many(task, states, rngs)

    with chat_server(talks) as server:
        user = Counted({"model": "stub", "base_url": server.url})
        played(Plain(), "SlotFilling-v0", 8, {"simulator": user, "language": "english"})
    assert asked_at_once[0] == 8
    assert sum(asked_at_once) == len(server.bodies)


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
    task, heard = Wordle(), PromptForm().heard
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
    told = r"episode 0 of seed 0.*turn 0 of the {}.*127\.0\.0\.1:9"
    with pytest.raises(ServiceError, match=told.format("system")):
        played("openai:stub", count=2, **dead)
    simulator = {"name": "openai:stub", **dead}
    with pytest.raises(ServiceError, match=told.format("user")):
        played(Plain(), "SlotFilling-v0", 2, {"simulator": simulator})


def test_a_refusal_and_a_miss_name_the_dialogue(tmp_path):
    (tmp_path / "tape").touch()
    with pytest.raises(TapeMissError, match=r"^episode 0 of seed 0, Wordle, turn 0 of the system"):
        played("openai:stub", count=2, replay=str(tmp_path / "tape"))
    with chat_server(guesses) as server:
        other = server.url.replace("/v1", "/v2")
        with pytest.raises(CompletionRefusedError, match=r"^episode 0 of seed 0.*status 404"):
            played("openai:stub", count=2, base_url=other)


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
