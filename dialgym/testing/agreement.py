"""A record of one dialogue, and its players: the same seed and texts give it through every door.

A player is a function ``(env_id, settings, seed, texts) -> PlayedChat`` that plays the texts by way
of one library. `check_agreement` holds it to the rules, which play the same texts without any view.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.language.chat_tokens import ChatTokens
from dialgym.language.messages import ASSISTANT, Message
from dialgym.registry import entry_of
from dialgym.rollouts.player import make_dialogue
from dialgym.rollouts.random_text import random_text
from dialgym.simulators import shown_to
from dialgym.tasks import Task
from dialgym.views.chat import Chat, ChatForm, ChatReply, note_turn
from dialgym.views.chat_batch import ChatBatch
from dialgym.views.making import make_view
from dialgym.views.spaces import clean

Lines = tuple[tuple[str, str], ...]
Player = Callable[[str, Mapping[str, Any], int, Sequence[str]], "PlayedChat"]
"""Plays the texts in the dialogue of an id, settings and seed."""


@dataclass(frozen=True)
class PlayedChat:
    """One dialogue in plain values, to be compared by ``==``.

    A library may have no place for some of them: they are None then, and its door says so.

    Attributes:
        opening: role and content of the messages before the learner's first turn.
        messages: the same of all of them up to the learner's last turn.
        closing: what it has heard after that; "" for nothing.
        said: positions of the learner's own messages.
        rewards: of each of its turns.
        components: the parts of each reward that counted.
        terminated, truncated, success: the end.
    """

    opening: Lines
    messages: Lines
    closing: str | None
    said: tuple[int, ...] | None
    rewards: tuple[float, ...]
    components: tuple[Mapping[str, float], ...] | None
    terminated: bool | None
    truncated: bool | None
    success: bool | None


METEOR = {"rewards": {"meteor": 1.0}}
FAMILIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Wordle-20": ("optimal", {}),
    "TwentyQuestions-16": ("greedy", {}),
    "Bargain": ("conceding", {}),
    "Endgames-Queen": ("greedy", {"turns": 12}),
    "ServiceDesk": ("careful", {}),
    "ServiceDesk-Phone-English": ("careful", {}),
    "VisualDialogue-100": ("greedy", {}),
    "SlotFilling": ("handcrafted", {"language": "english"}),
    "MultiWOZ": ("rule", {"language": "words"}),
    "DailyDialog-Conversation": ("reference", METEOR),
    "Comments": ("logged", {}),
    "Logged": ("reference", {}),
    "Wordle-20 user": ("host", {"learner": "user"}),
    "TwentyQuestions-16 user": ("answerer", {"learner": "user"}),
    "Bargain user": ("conceding", {"learner": "user"}),
    "Endgames-Mate2 user": ("weak", {"learner": "user"}),
    "ServiceDesk-Phone user": ("agenda", {"learner": "user"}),
    "SlotFilling user": ("agenda", {"learner": "user", "language": "english"}),
}
"""By id without view and version, and by learner: an expert and settings."""
SEEDS = 20


@cache
def case_of(family: str, seed: int) -> tuple[str, Mapping[str, Any], list[str], PlayedChat]:
    """Id, settings, texts and record of a dialogue of one of `FAMILIES`."""
    env_id = f"{family.removesuffix(' user')}-utterance-v0"
    expert, settings = FAMILIES[family]
    texts = script_of(env_id, settings, seed, expert)
    return env_id, settings, texts, by_rules(env_id, settings, seed, texts)


def script_of(env_id: str, settings: Mapping[str, Any], seed: int, expert: str) -> list[str]:
    """Texts of a dialogue, by the rules alone: an expert's, of every fourth seed any characters.

    Of these the second is in capitals and the third too long. None is blank or has space around it,
    as some libraries remove that.

    Args:
        env_id: an id of the utterance view.
        settings: of the task and the view.
        seed: of the dialogue.
        expert: a speaker of the learner, by name.
    """
    dialogue = make_dialogue(entry_of(env_id), settings)
    task, learner = dialogue.task, dialogue.learner
    rng, words = np_random(seed)[0], np.random.default_rng([seed, 1])
    speaker, texts = task.speaker_named(learner, expert), list[str]()
    exchange = dialogue.start(rng, None)
    while not exchange.over:
        if seed % 4 == 3:
            text = _any_text(task, learner, words, len(texts))
        else:
            text = speaker.reply(task, shown_to(speaker, task, dialogue.state), words).strip()
        texts.append(text)
        form = ChatForm(task, learner)
        exchange = dialogue.say(_cleaned(form, text), rng)
    return texts


def _any_text(task: Task, learner: str, rng: np.random.Generator, turn: int) -> str:
    text = random_text(task, learner, rng)
    text = text.upper() if turn == 1 else text
    text += "x" * task.facts.limit(learner) if turn == 2 else ""
    return text.strip() or "?"


def _cleaned(form: ChatForm, text: str) -> str:
    return clean(form.read(text), form.task.facts, form.learner)


def by_rules(
    env_id: str, settings: Mapping[str, Any], seed: int, texts: Sequence[str]
) -> PlayedChat:
    """The record by the rules alone, which all others must equal."""
    dialogue = make_dialogue(entry_of(env_id), settings)
    task, learner, rng = dialogue.task, dialogue.learner, np_random(seed)[0]
    form = ChatForm(task, learner)
    dialogue.start(rng, None)
    messages = form.opening(dialogue.state, task.transcript(dialogue.state, learner))
    opening, said, exchanges = lines_of(messages), list[int](), []
    for text in texts:
        exchange = dialogue.say(_cleaned(form, text), rng)
        note_turn(messages, said, text)
        form.hear(messages, exchange.heard, exchange.over)
        exchanges.append(exchange)
    last = exchanges[-1]
    return played(
        opening,
        messages,
        [exchange.reward for exchange in exchanges],
        said,
        [exchange.components for exchange in exchanges],
        (last.terminated, last.truncated),
        bool(last.success),
    )


def by_view(
    env_id: str, settings: Mapping[str, Any], seed: int, texts: Sequence[str]
) -> PlayedChat:
    """The record of the plain utterance view, its messages as `ChatForm` makes them."""
    env: Any = make_view(entry_of(env_id), **settings)
    form = ChatForm(env.task, env.learner)
    env.reset(seed=seed)
    messages = form.opening(
        env.dialogue.state, env.task.transcript(env.dialogue.state, env.learner)
    )
    opening, said, replies = lines_of(messages), list[int](), []
    for text in texts:
        _, reward, terminated, truncated, info = env.step(form.read(text))
        note_turn(messages, said, text)
        heard = form.hear(messages, env.heard, terminated or truncated)
        parts = info["reward_components"]
        replies.append(ChatReply(heard, reward, parts, terminated, truncated, info))
    return record_of(opening, messages, said, replies)


def by_chat(
    env_id: str, settings: Mapping[str, Any], seed: int, texts: Sequence[str]
) -> PlayedChat:
    """The record of a `Chat`."""
    chat = Chat(env_id, **settings)
    opening = lines_of(chat.reset(seed=seed))
    replies = [chat.step(text) for text in texts]
    return record_of(opening, chat.messages, chat.said, replies)


def by_batch(
    env_id: str, settings: Mapping[str, Any], seed: int, texts: Sequence[str]
) -> PlayedChat:
    """The record of the second row of a `ChatBatch`, beside another dialogue that rests."""
    batch = ChatBatch(env_id, 2, **settings)
    opening = lines_of(batch.reset([seed + 1, seed])[1])
    replies = [batch.step({1: text})[1] for text in texts]
    return record_of(opening, batch.messages[1], batch.said[1], replies)


def by_tokens(tokenizer: Any) -> Player:
    """A player of a `Chat` whose turns are token ids: what is said is decoded from them.

    Args:
        tokenizer: with a chat template, which decodes what it encodes.
    """

    def play(
        env_id: str, settings: Mapping[str, Any], seed: int, texts: Sequence[str]
    ) -> PlayedChat:
        chat = Chat(env_id, **settings)
        opening = chat.reset(seed=seed)
        tokens, replies = ChatTokens(tokenizer, opening), []
        for text in texts:
            replies.append(chat.step(tokens.say(tokens.text_ids(text))))
            heard = chat.messages[chat.said[-1] + 1 :]
            if replies[-1].over:
                tokens.end(heard)
            else:
                tokens.hear(heard)
        messages = [message.copy() for message in chat.messages]
        for number, place in enumerate(chat.said):  # by the mask alone
            own = [i for i, turn in zip(tokens.ids, tokens.turn) if turn == number]
            messages[place]["content"] = tokenizer.decode(own)
        return record_of(lines_of(opening), messages, chat.said, replies)

    return play


def record_of(
    opening: Lines,
    messages: Sequence[Message],
    said: Sequence[int],
    replies: Sequence[ChatReply],
) -> PlayedChat:
    """The record of a dialogue by the replies of a chat."""
    last = replies[-1]
    return played(
        opening,
        messages,
        [reply.reward for reply in replies],
        said,
        [reply.components for reply in replies],
        (last.terminated, last.truncated),
        bool(last.info["is_success"]),
    )


def played(
    opening: Lines,
    messages: Sequence[Mapping[str, Any]],
    rewards: Sequence[float],
    said: Sequence[int] | None = None,
    components: Sequence[Mapping[str, float]] | None = None,
    ends: tuple[bool | None, bool | None] = (None, None),
    success: bool | None = None,
    closes: bool = True,
) -> PlayedChat:
    """The record of a dialogue by what a library tells of it.

    Args:
        opening: of `PlayedChat`.
        messages: all of them.
        rewards, said, components, success: as there; None for what the library does not tell.
        ends: terminated and truncated.
        closes: False where the library has no place for what is heard after the last turn.
    """
    roles = [message["role"] for message in messages]
    count = len(roles) - roles[::-1].index(ASSISTANT)
    closing = "\n".join([message["content"] for message in messages[count:]])
    return PlayedChat(
        opening,
        lines_of(messages[:count]),
        closing if closes else None,
        None if said is None else tuple(said),
        tuple(rewards),
        None if components is None else tuple(map(counted, components)),
        *ends,
        success,
    )


def lines_of(messages: Sequence[Mapping[str, Any]]) -> Lines:
    """Role and content of each message."""
    return tuple([(message["role"], message["content"]) for message in messages])


def counted(components: Mapping[str, float]) -> Mapping[str, float]:
    """The parts of a reward that are not 0."""
    return {name: float(value) for name, value in components.items() if value}


def check_agreement(player: Player, family: str, seed: int, lacks: Collection[str] = ()) -> None:
    """Hold a door to the rules: its record of a dialogue must be theirs, not nearly so.

    Args:
        player: plays by way of the door.
        family: one of `FAMILIES`.
        seed: of the dialogue.
        lacks: names of the parts of a record that the library has no place for; they must be None.

    Raises:
        AssertionError: it is another; the message names the first part that differs.
    """
    env_id, settings, texts, expected = case_of(family, seed)
    got = player(env_id, settings, seed, texts)
    for name, value in vars(expected).items():
        wanted = None if name in lacks else value
        if getattr(got, name) != wanted:
            raise AssertionError(
                f"{family}, seed {seed}: {name} is {getattr(got, name)!r}; by the rules {wanted!r} "
                f"(texts {texts!r})"
            )
