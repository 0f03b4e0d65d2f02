"""Dialogues as the messages of a language model, one and many at once."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import dialgym
from dialgym import Chat, ChatBatch
from dialgym.language.messages import OPENER
from dialgym.language.model_text import READINGS
from dialgym.rollouts.random_text import random_text
from dialgym.simulators import shown_to

EXPERTS = {
    "Wordle-20": "optimal",
    "TwentyQuestions-16": "greedy",
    "Bargain": "conceding",
    "CarDealer": "dealer",
    "Endgames-Mate2": "optimal",
    "ServiceDesk": "careful",
    "Maze": "optimal",
    "TextNav-Partial": "optimal",
    "VisualDialogue-100": "greedy",
    "SlotFilling": "handcrafted",
    "SlotFilling-Domains": "handcrafted",
    "MultiWOZ": "rule",
    "DailyDialog-Conversation": "reference",
    "Comments": "logged",
    "Logged": "reference",
}
SETTINGS = {
    "SlotFilling": {"language": "english"},
    "MultiWOZ": {"language": "words"},
    "DailyDialog-Conversation": {"rewards": {"meteor": 1.0}},
}
SMALL = "Wordle-20-v0"


def spoken(name, seed, party="system", **settings):
    """Texts of an expert, every third dialogue at random; and what the plain view makes of them."""
    env = dialgym.make(f"{name}-utterance-v0", learner=party, **settings).unwrapped
    task = env.task
    known = task.speakers[party]
    expert = EXPERTS.get(name) if party == "system" else next(iter(known))
    speaker = task.speaker_named(party, expert)
    rng = np.random.default_rng([seed, 1])
    env.reset(seed=seed)
    texts, outcomes, over = [], [], False
    while not over:
        if seed % 3 == 2:
            text = random_text(task, party, rng).strip()
        else:
            text = speaker.reply(task, shown_to(speaker, task, env.dialogue.state), rng)
        texts.append(text)
        _, reward, terminated, truncated, info = env.step(text)
        over = terminated or truncated
        outcomes.append((reward, terminated, truncated, info))
    return texts, outcomes


@pytest.mark.parametrize("name", EXPERTS)
def test_chats_are_the_dialogues_of_the_utterance_view(name):
    settings = SETTINGS.get(name, {})
    chat = Chat(f"{name}-v0" if "Domains" not in name else f"{name}-act-v0", **settings)
    for seed in range(3):
        texts, outcomes = spoken(name, seed, **settings)
        opening = chat.reset(seed=seed)
        assert opening[0] == {"role": "system", "content": chat.brief}
        replies = [chat.step(text) for text in texts]
        assert [(r.reward, r.terminated, r.truncated, r.info) for r in replies] == outcomes
        assert all(sum(r.components.values()) == pytest.approx(r.reward) for r in replies)
        assert [chat.messages[i] for i in chat.said] == [
            {"role": "assistant", "content": text} for text in texts
        ]
        roles = [message["role"] for message in chat.messages[1:]]
        assert all(a != b for a, b in pairwise(roles))
        assert chat.messages[: len(opening)] == opening
        assert all(reply.text for reply in replies[:-1])
        with pytest.raises(ResetNeeded, match="after the end"):
            chat.step("more")


@pytest.mark.parametrize("name", ["Wordle-20", "TwentyQuestions-16", "SlotFilling"])
def test_the_user_learns_too(name):
    settings = SETTINGS.get(name, {})
    chat = Chat(f"{name}-v0", learner="user", **settings)
    for seed in (0, 1):
        texts, outcomes = spoken(name, seed, "user", **settings)
        chat.reset(seed=seed)
        replies = [chat.step(text) for text in texts]
        assert [(r.reward, r.terminated, r.truncated, r.info) for r in replies] == outcomes
        assert len(chat.said) == len(texts)
        roles = [message["role"] for message in chat.messages[1:]]
        assert all(a != b for a, b in pairwise(roles))
    if name == "Wordle-20":
        assert chat.messages[-1]["content"].startswith("system: ")


@pytest.mark.parametrize("name", EXPERTS)
def test_a_batch_is_as_many_chats(name):
    settings = SETTINGS.get(name, {})
    env_id = f"{name}-utterance-v0"
    scripts = [spoken(name, seed, **settings)[0] for seed in range(4)]
    batch, chats = ChatBatch(env_id, 4, **settings), []
    assert batch.reset([0, 1, 2, 3]) == [
        chats.append(chat := Chat(env_id, **settings)) or chat.reset(seed=seed) for seed in range(4)
    ]
    turn = 0
    while batch.open:
        some = [row for row in batch.open if row % 2 == turn % 2 or len(batch.open) == 1]
        for row in some or batch.open:
            said = len(batch.said[row])
            replies = batch.step({row: scripts[row][said]})
            assert replies == {row: chats[row].step(scripts[row][said])}
        turn += 1
    assert batch.messages == [chat.messages for chat in chats]
    assert batch.said == [chat.said for chat in chats]


def test_rows_that_end_early_rest_while_the_others_go_on_together():
    batch = ChatBatch(SMALL, 3)
    batch.reset(7)
    secrets = [batch.task.naming(state) for state in batch.env.dialogues.states(np.arange(3))]
    first = batch.step({0: secrets[0], 1: "zzzzz", 2: "zzzzz"})
    assert [reply.over for reply in first.values()] == [True, False, False]
    assert batch.open == [1, 2]
    with pytest.raises(ValueError, match=r"those that are open, \[1, 2\]; got 0"):
        batch.step({0: "again"})
    last = batch.step({1: secrets[1], 2: secrets[2]})
    assert [reply.reward for reply in last.values()] == [0.0, 0.0]
    assert batch.open == []
    assert len(batch.said[0]) == 1
    assert batch.reset(7)[0][0]["role"] == "system"
    assert batch.open == [0, 1, 2]


def test_the_first_message_tells_all_and_the_second_opens():
    messages = Chat(SMALL).reset(seed=0)
    assert "You have 6 guesses" in messages[0]["content"]
    assert messages[1:] == [{"role": "user", "content": OPENER}]


def test_lines_of_its_own_party_at_the_beginning_are_not_said_by_the_learner():
    chat = Chat("SlotFilling-utterance-v0")
    messages = chat.reset(seed=0)
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "hello()"
    assert chat.said == ()
    chat.step("request(area)")
    assert chat.said == (4,)


@pytest.mark.parametrize("said", ["CRANE", "  crane ", "crane\n", "<think>c r a</think>\nCrane"])
def test_what_is_said_is_heard_as_it_was_meant(said):
    chat, plain = Chat("Wordle-v0"), Chat("Wordle-v0")
    chat.reset(seed=0)
    plain.reset(seed=0)
    reply = chat.step(said)
    assert reply.info["utterance"] == "crane"
    assert reply == plain.step("crane")
    assert chat.messages[chat.said[0]]["content"] == said


@pytest.mark.parametrize(
    ("answer", "text", "heard"),
    [
        ("last line", "I think it is\ncrane\n\n", "crane"),
        ("last line", "", ""),
        ("tag", "Well, <answer> crane </answer>.", "crane"),
        ("tag", "<answer>wrong</answer> no, <answer>crane", "crane"),
        ("tag", "crane", ""),
        ("tag", "<think><answer>no</answer></think><answer>crane</answer>", "crane"),
        ("whole", "<think>it may be cr", ""),
    ],
)
def test_forms_of_answers(answer, text, heard):
    chat = Chat("Wordle-v0", answer=answer)
    chat.reset(seed=0)
    assert chat.step(text).info["utterance"] == heard
    asked = {"tag": "<answer>", "last line": "last line", "whole": "guesses"}[answer]
    assert asked in chat.brief
    assert {*READINGS} == {"tag", "last line", "whole"}


def test_a_clone_goes_on_by_itself():
    chat = Chat("TwentyQuestions-16-v0", noise=0.4)
    chat.reset(seed=5)
    chat.step("is it alive?")
    branch, restored = chat.clone(), pickle.loads(pickle.dumps(chat))
    replies = [chat.step(f"is it {what}?") for what in ("an animal", "a cat")]
    for other in (branch, restored):
        assert other.seed == 5
        assert [other.step(f"is it {what}?") for what in ("an animal", "a cat")] == replies
        assert other.messages == chat.messages
    branch.step("is it a ring?")
    assert len(branch.messages) == len(chat.messages) + 2


def test_turns_are_limited_as_by_a_time_limit():
    for make in (Chat, lambda *args, **kw: ChatBatch(args[0], 1, **kw)):
        chat = make("Wordle-v0", max_episode_steps=2)
        chat.reset(3)
        first, second = [
            chat.step("crane") if isinstance(chat, Chat) else chat.step({0: "crane"})[0]
            for _ in range(2)
        ]
        assert not first.over
        assert (second.terminated, second.truncated) == (False, True)
        told = chat.messages[0] if isinstance(chat, Chat) else chat.messages[0][0]
        assert "cut after 2 of your turns" in told["content"]
        with pytest.raises((ResetNeeded, ValueError), match=r"after the end|that are open"):
            chat.step("crane" if isinstance(chat, Chat) else {0: "crane"})


def test_seeds_go_on_and_hold():
    chat = Chat(SMALL)
    assert chat.seed is None
    chat.reset(seed=4)
    assert chat.seed == 4
    ends = []
    for _ in range(2):
        chat.reset(seed=4)
        ends.append([chat.reset() and chat.env.dialogue.state.secret for _ in range(5)])
    assert ends[0] == ends[1]
    assert len({*ends[0]}) > 1


def test_a_returned_list_is_a_copy():
    chat = Chat(SMALL)
    messages = chat.reset(seed=0)
    messages[0]["content"] = "nothing"
    messages.clear()
    assert chat.brief.startswith("Guess the secret word")


def test_options_and_simulators_reach_the_dialogue():
    chat = Chat("TwentyQuestions-16-v0", simulator="truthful", reward_scale=2.0)
    chat.reset(seed=0, options={"item": "a ring"})
    assert chat.step("is it alive?").reward == -2.0
    assert chat.step("is it a ring?").terminated


BAD = {
    "expected a string; got None": lambda chat: chat.step(None),
    r"expected a string; got b'crane'": lambda chat: chat.step(b"crane"),
    r"expected a string; got \['crane'\]": lambda chat: chat.step(["crane"]),
    "seed of Wordle: expected a whole number from 0": lambda chat: chat.reset(seed=-1),
    "expected a whole number from 0, or None; got 1.5": lambda chat: chat.reset(seed=1.5),
    "option 'wrod'": lambda chat: chat.reset(options={"wrod": "crane"}),
    "Did you mean 'dialgym/Wordle-20-v0'": lambda chat: Chat("Wordle-2O-v0"),
    "learner": lambda chat: Chat(SMALL, learner="host"),
    "answer": lambda chat: Chat(SMALL, answer="json"),
    "the dialogue was over before the user": lambda chat: Chat("Comments-v0", "user").reset(),
    "num_chats": lambda chat: ChatBatch(SMALL, 0),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused_and_changes_nothing(message):
    chat = Chat(SMALL)
    chat.reset(seed=0)
    before = list(chat.messages)
    with pytest.raises(ValueError, match=message):
        BAD[message](chat)
    assert chat.messages == before
    assert chat.step("crane").text


def test_settings_that_nobody_has_are_refused():
    with pytest.raises(TypeError, match="nonsense"):
        Chat(SMALL, nonsense=1)


def test_no_turn_comes_before_the_first_reset():
    with pytest.raises(ResetNeeded, match="before the first reset"):
        Chat(SMALL).step("crane")
    with pytest.raises(ResetNeeded, match="before the first reset"):
        ChatBatch(SMALL, 2).step({0: "crane"})


@pytest.mark.parametrize("made", [Chat, lambda *a, **k: ChatBatch(*a, 2, **k)], ids=["one", "many"])
def test_a_system_without_a_way_into_the_database_is_warned_of(made):
    for language in ("acts", "english"):
        with pytest.warns(UserWarning, match=r"chat of MultiWOZ.*language='words'") as caught:
            made("MultiWOZ-v0", language=language)
        assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made("MultiWOZ-v0", language="words")
        made("MultiWOZ-v0", language="english", learner="user")
