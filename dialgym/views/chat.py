"""A dialogue as the messages of a language model: the form that all other libraries know."""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

from dialgym.errors import one_of
from dialgym.language import Utterance
from dialgym.language.messages import ASSISTANT, USER, Message, heard_text, opening, spoken
from dialgym.language.model_text import READINGS, REQUESTS
from dialgym.language.text import as_typed
from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rewards import Components
from dialgym.tasks import Task
from dialgym.views.arguments import AFTER_THE_END, reset_needed
from dialgym.views.info import Info, group_of
from dialgym.views.making import split_kwargs
from dialgym.views.options import check_step_limit
from dialgym.views.utterance_env import UtteranceEnv


class ChatReply(NamedTuple):
    """Answer to a turn of the learner.

    Attributes:
        text: what was heard since, a line an utterance; never empty before the end, and then the
            closing words of the other party, or "".
        reward: of the turn.
        components: the parts of the reward by name, 0 where one did not count.
        terminated: the dialogue is over by its rules.
        truncated: a limit has cut it short.
        info: as of the utterance view; see `dialgym.views.info`.
    """

    text: str
    reward: float
    components: Components
    terminated: bool
    truncated: bool
    info: Info

    @property
    def over(self) -> bool:
        """True after the last turn."""
        return self.terminated or self.truncated


class Chat:
    """A dialogue in which the learner's turns are the assistant's, and all others' the user's.

    The first message is the system's: the brief of the learner, which is all that it must know
    (`Task.brief`). Then user and assistant alternate. Rewards, ends and seeds are those of the
    utterance view, of which this is another form.

    What the learner says is heard without the space around it, in lower case where the task knows
    no other, and without ``<think> ... </think>``; messages keep it as it was said. Settings in
    which a language model lacks something (`Task.chat_advice`) are warned of.

    Args:
        id_or_task: an id in any view, or what stands for one; see `dialgym.registry.entry_of`.
        learner: the party of the assistant; None for ``system``, or what the id has.
        answer: what of a text is said: the ``"whole"``, its ``"last line"``, or the ``"tag"``,
            what is between ``<answer>`` and ``</answer>``; the brief asks for that form.
        max_episode_steps: turns of the learner after which the dialogue is truncated.
        settings: of the task, and options of the utterance view such as `simulator`.

    Attributes:
        env: the utterance view.
        task, learner: its rules and the party.
        env_id: the id of that view.
        messages: all so far, each a dict of ``role`` and ``content``; only ever appended to.

    Raises:
        ValueError: there is no such id, party, setting or form of answers, or the limit is none.
    """

    def __init__(
        self,
        id_or_task: Environment,
        learner: str | None = None,
        answer: str = "whole",
        max_episode_steps: int | None = None,
        **settings: Any,
    ) -> None:
        entry = speaking_entry(id_or_task)
        self.env_id = entry.id
        self._made = split_kwargs(entry, UtteranceEnv, with_learner(settings, learner))
        self.env = UtteranceEnv(**self._made)
        self.task, self.learner = self.env.task, self.env.learner
        warn_of(self.task, self.learner)
        self._form = ChatForm(self.task, self.learner, answer, max_episode_steps)
        self.messages: list[Message] = []
        self._said: list[int] = []

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> list[Message]:
        """Begin a dialogue.

        Args:
            seed: of its generator; None to go on with that of the dialogues before.
            options: of the task, which fix hidden parts.

        Returns:
            A copy of the messages before the learner's first turn.

        Raises:
            ValueError: the seed or an option is impossible, or the learner never has the floor.
        """
        given: Any = options  # any mapping; the task refuses what is none
        self.env.reset(seed=seed, options=given)
        state = self.env.dialogue.state
        lines = self.task.transcript(state, self.learner)
        self.messages, self._said = self._form.opening(state, lines), []
        return copied(self.messages)

    def step(self, text: str) -> ChatReply:
        """Let the learner say a text, and hear the answer.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: it is no string.
        """
        check_turn(text, self.task)
        if self._form.cuts(len(self._said)):
            raise reset_needed(self.task.name, AFTER_THE_END)
        _, reward, terminated, truncated, info = self.env.step(self._form.read(text))
        note_turn(self.messages, self._said, text)
        truncated |= self._form.cuts(len(self._said)) and not terminated
        over = terminated or truncated
        heard = self._form.hear(self.messages, self.env.heard, over)
        parts = group_of(info, "reward_components")
        return ChatReply(heard, reward, parts, terminated, truncated, info)

    @property
    def brief(self) -> str:
        """The first message's text; "" before the first reset."""
        return self.messages[0]["content"] if self.messages else ""

    @property
    def said(self) -> tuple[int, ...]:
        """Positions of the messages that the learner has said. Others of the assistant are what a
        dialogue begins with."""
        return tuple(self._said)

    @property
    def seed(self) -> int | None:
        """The seed of the generator; None before the first reset."""
        return self.env.np_random_seed if self.messages else None

    def clone(self) -> Self:
        """The same dialogue at the same point, to go on in another way."""
        other = copy(self)
        other.env = UtteranceEnv(**self._made)
        if self.messages:
            other.env.restore_state(self.env.clone_state())
            other.env._np_random_seed = self.env.np_random_seed
        other.messages, other._said = copied(self.messages), self._said.copy()
        return other

    def close(self) -> None:
        """Close the view."""
        self.env.close()


class ChatForm:
    """The form of the chats of a task: how they begin, what is said and what is heard.

    Args:
        task: the rules.
        learner: the assistant's party.
        answer, max_episode_steps: as of `Chat`.
    """

    def __init__(
        self, task: Task, learner: str, answer: str = "whole", max_episode_steps: int | None = None
    ) -> None:
        one_of("answer", answer, READINGS, task.name)
        check_step_limit(max_episode_steps, task.name)
        self.task, self.learner = task, learner
        self._reading, self._request = READINGS[answer], REQUESTS.get(answer)
        self._limit = None if max_episode_steps == -1 else max_episode_steps

    def opening(self, state: Any, lines: Sequence[Utterance]) -> list[Message]:
        """Messages at the beginning of a dialogue, of which the learner has seen `lines`."""
        own = lines[self.task.notes(state, self.learner) :]
        return opening(self._brief(state), own, self.learner)

    def _brief(self, state: Any) -> str:
        brief = self.task.brief(state, self.learner)
        if self._limit is not None:
            brief += f"\n\nThe dialogue is cut after {self._limit} of your turns."
        return f"{brief}\n\n{self._request}" if self._request else brief

    def read(self, text: str) -> str:
        """Text that the rules hear, of one that the learner writes."""
        return as_typed(self._reading(text), self.task.facts.charset)

    def hear(self, messages: list[Message], lines: Sequence[Utterance], over: bool) -> str:
        """Append the reply as a message unless it is empty; return its text."""
        text = heard_text(lines, self.learner)
        text = text if over else spoken(text)
        if text:
            messages.append(Message(role=USER, content=text))
        return text

    def cuts(self, turns: int) -> bool:
        """True where so many turns of the learner are all that it has."""
        return self._limit is not None and turns >= self._limit


def speaking_entry(id_or_task: Environment) -> RegistryEntry:
    """The entry of an id, or of what stands for one, in its utterance view."""
    return entry_of(id_or_task).in_view("utterance")


def with_learner(settings: Mapping[str, Any], learner: str | None) -> dict[str, Any]:
    """Settings with the learner among them, where one is given."""
    return {**settings, **({} if learner is None else {"learner": learner})}


def warn_of(task: Task, learner: str) -> None:
    """Warn the caller of a chat's constructor where a language model would lack something."""
    if learner in task.chat_advice:
        warnings.warn(f"chat of {task.name}: {task.chat_advice[learner]}", stacklevel=3)


def note_turn(messages: list[Message], said: list[int], text: str) -> None:
    """Append what the learner has said, and its position."""
    said.append(len(messages))
    messages.append(Message(role=ASSISTANT, content=text))


def check_turn(text: Any, task: Task) -> None:
    """Raise a ValueError unless a turn is a string."""
    if not isinstance(text, str):
        raise ValueError(
            f"turn of {task.name}: expected a string; got {text!r:.80}. For token ids use the "
            "token view, or decode them."
        )


def copied(messages: Sequence[Message]) -> list[Message]:
    """A copy of messages that shares nothing."""
    return [message.copy() for message in messages]
