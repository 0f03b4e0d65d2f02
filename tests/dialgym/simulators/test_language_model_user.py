"""Language models as users, or any other party, of every task: ``simulator={"lm": ...}``."""

import re

import numpy as np
import pytest

import dialgym
from dialgym.experiments import evaluate
from dialgym.registry import entry_of, make_task
from dialgym.simulators.language_model import facts_of, language_model
from dialgym.simulators.model_prompt import PromptForm
from dialgym.trust import check_names
from dialgym.views.speakers import find_speaker
from tests.support.by_day import by_day
from tests.support.chat_server import chat_server
from tests.support.commands import fail, succeed
from tests.support.spoken_families import FAMILIES

pytest.importorskip("httpx", reason="the extra lm")

PARTIES = [(name, party) for name in FAMILIES for party in ("system", "user")]
PARTIES.remove(("Comments", "user"))  # who never has the floor
BY_DAY = [(name, "system") for name in FAMILIES]
BY_DAY += [("TwentyQuestions-16", "user"), ("SlotFilling", "user")]
SILENT = [("Comments", "system")]
"""Learners whose other party never has the floor."""


def chatters(body) -> str:
    """Words of the chat so far, another selection in each request."""
    text = " ".join(message["content"] for message in body["messages"])
    words = re.findall("[A-Za-z]{2,8}", text)
    return " ".join(words[body["seed"] % 7 :: 1 + len(words) // 3])


@pytest.fixture(scope="module")
def service():
    with chat_server(chatters) as server:
        yield server


def transcripts(env, count=3):
    """Dialogues of a random learner, one by one."""
    task, told = env.unwrapped.task, []
    for seed in range(count):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step("yes" if seed else "no")
            over = terminated or truncated
        dialogue = env.unwrapped.dialogue
        told.append(list(task.transcript(dialogue.state, dialogue.learner)))
    return told


@pytest.mark.parametrize(("name", "learner"), by_day(PARTIES, *BY_DAY))
def test_every_task_plays_with_it_singly_and_batched(service, name, learner):
    user = {"lm": {"model": "stub", "base_url": service.url, "max_tokens": 20}}
    made = {**FAMILIES[name], "learner": learner, "simulator": user}
    env = dialgym.make(f"{name}-utterance-v0", **made)
    before = len(service.bodies)
    singly = transcripts(env)
    assert transcripts(env) == singly
    if (name, learner) not in SILENT:
        assert len(service.bodies) > before
    batch = dialgym.make_vec(f"{name}-utterance-v0", 2, **made)
    observations, _ = batch.reset(seed=[0, 1])
    assert list(observations) == [env.reset(seed=0)[0], env.reset(seed=1)[0]]
    batch.step(["no", "yes"])
    task = batch.unwrapped.task
    for row in range(2):
        lines = batch.unwrapped.dialogues.transcript(row)
        assert list(lines) == singly[row][: len(lines)]
    assert task.parties


@pytest.mark.parametrize("name", ["SlotFilling", "TwentyQuestions-16"])
def test_two_models_talk_to_each_other(service, name):
    lm = {"model": "stub", "base_url": service.url}
    made = {**FAMILIES[name], "simulator": {"lm": lm}}
    result = evaluate(lm, f"{name}-utterance-v0", 4, [0], made)
    assert result.usage["requests"] > 4
    assert evaluate(lm, f"{name}-utterance-v0", 4, [0], made).as_dict() == result.as_dict()


class Greets:
    """A system that goes on until the turns are over."""

    def reply(self, task, state, rng):
        return "Hello."


GARBLE = "Blorp flumph quux."


@pytest.mark.parametrize(
    ("name", "made", "clear"),
    [
        ("SlotFilling", {"language": "english"}, "I want thai food."),
        ("MultiWOZ", {"language": "english"}, "I need a hotel in the north."),
        ("TwentyQuestions-16", {}, "yes"),
    ],
)
def test_texts_that_the_task_makes_nothing_of_are_counted(name, made, clear):
    said = []

    def garbles(body):
        said.append(GARBLE if body["seed"] % 3 == 0 else clear)
        return said[-1]

    with chat_server(garbles) as server:
        lm = {"lm": {"model": "stub", "base_url": server.url}}
        result = evaluate(Greets(), f"{name}-utterance-v0", 5, [0], {**made, "simulator": lm})
    assert result.usage["not_understood"] == said.count(GARBLE) > 3
    assert f" {said.count(GARBLE)} not understood" in result.to_markdown()
    understood = evaluate("random", f"{name}-utterance-v0", 2, [0], made)
    assert "not_understood" not in understood.usage


def test_a_system_s_texts_are_counted_too():
    with chat_server(lambda body: GARBLE) as server:
        lm = {"name": "openai:stub", "base_url": server.url}
        result = evaluate(lm, "SlotFilling-utterance-v0", 3, [0], {"language": "english"})
    assert result.usage["not_understood"] == result.usage["requests"] > 3


def test_workers_ask_as_one_process_does(service):
    user = {"lm": {"model": "stub", "base_url": service.url}}
    here, there = (
        dialgym.make_vec("TwentyQuestions-8-v0", 2, workers=workers, simulator=user)
        for workers in (0, 1)
    )
    try:
        for seed in range(2):
            seen = [env.reset(seed=seed)[0] for env in (here, there)]
            assert np.array_equal(*seen)
            for action in [5, 9, 2] * 8:
                seen = [env.step(np.full(2, action))[0] for env in (here, there)]
                assert np.array_equal(*seen)
    finally:
        there.close()


def test_environment_variables_name_it(service, monkeypatch):
    task = make_task(entry_of("SlotFilling-v0"), {})
    monkeypatch.delenv("DIALGYM_LM_MODEL", raising=False)
    with pytest.raises(ValueError, match="DIALGYM_LM_MODEL"):
        find_speaker(task, "system", "lm")
    monkeypatch.setenv("DIALGYM_LM_MODEL", "stub")
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    user = find_speaker(task, "system", "lm")
    assert (user.name, user.client.base_url) == ("openai:stub", service.url)


@pytest.mark.parametrize(
    ("simulator", "told"),
    [
        ({"lm": {"model": "m", "personae": "x"}}, "persona"),
        ({"lm": {"model": "m"}, "nearest": 3}, "nothing beside 'lm'"),
        ({"lm": "m"}, "expected {'lm'"),
        ({"lm": {"model": "m", "prompt": "Be brief."}}, "expected {brief} in it"),
        ({"lm": {"model": "m", "prompt": "{brief}", "persona": "x"}}, "expected {persona} in it"),
    ],
)
def test_what_cannot_be_is_said(simulator, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        dialgym.make("SlotFilling-utterance-v0", simulator=simulator)


def test_a_file_may_name_none():
    for named in ({"lm": {"model": "a-model"}}, "lm"):
        with pytest.raises(ValueError, match=r"names '(openai:a-model|lm)'"):
            check_names({"simulator": named}, "a file")


# Prompts


def of_slot_filling():
    task = make_task(entry_of("SlotFilling-v0"), {"language": "english"})
    return task, task.initial(np.random.default_rng(0))


def test_a_prompt_is_made_of_the_task_and_has_a_version():
    task, state = of_slot_filling()
    form = PromptForm(persona="You are in a hurry.", done_marker="###")
    text = form.first_message(task, state, "user")
    assert text == (
        f"{task.brief(state, 'user')}\n\nYou are in a hurry.\n\n"
        "When you have all that you wanted, write ###."
    )
    own = PromptForm(prompt="{brief} In short: {brief}").first_message(task, state, "user")
    assert own == f"{task.brief(state, 'user')} In short: {task.brief(state, 'user')}"
    assert form.facts()["version"] == 1


def test_the_hash_tells_prompts_apart():
    speakers = [
        language_model("openai:m", **more)
        for more in ({}, {"persona": "You are rude."}, {"temperature": 0.5}, {"timeout": 5})
    ]
    hashes = [facts_of(speaker)["sampling"] for speaker in speakers]
    assert len({*hashes}) == 3
    assert hashes[0] == hashes[3]


def test_the_task_ends_a_dialogue_and_not_the_marker():
    task, _ = of_slot_filling()
    heard = PromptForm(done_marker="[END]").heard
    assert heard("thank you [END]", task, "user") == "thank you"
    assert heard("[END]", task, "user") == "bye"
    with chat_server(lambda body: "[END]") as server:
        user = {"lm": {"model": "stub", "base_url": server.url, "done_marker": "[END]"}}
        twenty = evaluate("random", "TwentyQuestions-8-v0", 2, [0], {"simulator": user})
        filled = evaluate(
            "random", "SlotFilling-v0", 2, [0], {"simulator": user, "language": "english"}
        )
    assert twenty.overall.mean_length > 1  # there a user has no such wish
    assert filled.overall.mean_length <= 2


def test_the_prompt_is_shown():
    given = ("play", "SlotFilling-v0", "--seed", "0", "--show-prompt", "--against", "openai:m")
    told = succeed(*given, "-p", "persona=You are in a hurry.")
    task, _ = of_slot_filling()
    assert task.instructions["user"].splitlines()[0] in told
    assert "You are in a hurry." in told
    assert "openai:MODEL" in fail("play", "SlotFilling-v0", "--show-prompt")
