"""TRL's door for models that call tools: the verb of a game as the only tool of a dialogue.

The verb, its argument and its description are the task's (`Task.verbs`, its brief). The trainer
calls `reset` with a row, lets the model call the tool, and asks for the reward at the end.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from dialgym.bridges.rows import begin, check_same, rows_of
from dialgym.errors import is_finite
from dialgym.optional import require
from dialgym.registry import Environment
from dialgym.tasks import Task
from dialgym.tasks.briefs import rules_of, verb_of
from dialgym.views.chat import Chat, ChatReply, check_turn

EXTRA, PURPOSE = "trl", "training by TRL"
MAKER = "dialgym.bridges.trl_tools.prompts"
OVER = "(The dialogue is over.)"
"""Last line of what a tool answers to the last turn."""


def prompts(id_or_task: Environment, count: int, seed: int = 0, **settings: Any) -> Any:
    """A ``datasets.Dataset`` of dialogues to begin, those of `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; settings must be plain values.
        count: rows.

    Returns:
        Columns of `dialgym.bridges.rows.rows_of`; the brief asks for the tool.

    Raises:
        ImportError: datasets is missing, which TRL brings.
        ValueError: there is no such id or setting, or one is no plain value.
    """
    chat, rows = Chat(id_or_task, **settings), rows_of(id_or_task, count, seed, **settings)
    request = request_of(chat.task, chat.learner)
    for row in rows:
        row["prompt"][0]["content"] += request
    return require("datasets", EXTRA, PURPOSE).Dataset.from_list(rows)


def environment(
    id_or_task: Environment, unfinished: float | None = None, **settings: Any
) -> type["ToolDialogue"]:
    """A class for ``GRPOTrainer(environment_factory=...)``, with `prompts` as its data.

    Args:
        id_or_task, settings: as of `dialgym.Chat`.
        unfinished: the reward of a dialogue that the model leaves before its end; None for the
            lowest return. With what it has earned until then, a model would learn to do nothing
            where turns cost.

    Raises:
        ValueError: there is no such id or setting, or the return has no lowest bound.
    """
    chat = Chat(id_or_task, **settings)
    bounds = chat.env.options.returns(chat.task)
    lowest = bounds[0] if unfinished is None else unfinished
    if not is_finite(lowest):
        raise ValueError(
            f"environment of {chat.env_id}: its return has no lowest bound, or {lowest!r} is no "
            "number. Give the reward of a dialogue that the model leaves, unfinished=."
        )
    tool = _tool(chat.task, chat.learner)
    members = {"_first": chat, "_unfinished": lowest, tool.__name__: tool}
    return type(f"{chat.task.name}Tool", (ToolDialogue,), members)


class ToolDialogue:
    """Base of an environment in TRL's form, which takes every public function for a tool.

    Attributes:
        chat: the dialogue.
        replies: the answers to its turns, for reward functions that are given ``environments``.
    """

    _first: Chat
    _unfinished: float

    def __init__(self) -> None:
        self.chat = self._first.clone()
        self.replies: list[ChatReply] = []
        self._failure: Exception | None = None

    def reset(self, **row: Any) -> None:
        """Begin the dialogue of a row, whose prompt has its opening already.

        Raises:
            ValueError: the row is none of `prompts` with this id and these settings.
        """
        self.replies, self._failure = [], None
        opening = begin(self.chat, row)
        opening[0]["content"] += request_of(self.chat.task, self.chat.learner)
        check_same(row["prompt"], opening, MAKER)

    def get_reward(self) -> float:
        """The return of a dialogue that is over; of another that of an unfinished one.

        Raises:
            Exception: the error by which the dialogue has failed, as of a simulator that cannot be
                reached. TRL tells a tool's errors to the model, which is not to pay for that one.
        """
        if self._failure is not None:
            raise self._failure
        over = bool(self.replies) and self.replies[-1].over
        return sum(reply.reward for reply in self.replies) if over else self._unfinished

    def _say(self, text: str) -> str:
        if self.replies and self.replies[-1].over:
            raise ValueError("the dialogue is over.")
        check_turn(text, self.chat.task)
        try:
            self.replies.append(self.chat.step(text))
        except Exception as error:
            self._failure = self._failure or error
            raise
        heard, over = self.replies[-1].text, self.replies[-1].over
        return "\n".join(filter(None, (heard, OVER))) if over else heard


def request_of(task: Task, party: str) -> str:
    """Last sentence of a brief, which asks for the tool."""
    verb, argument = verb_of(task, party)
    return f"\n\nEach turn is a call of the tool {verb}({argument}); nothing else is heard."


def _tool(task: Task, party: str) -> Callable[..., str]:
    """The verb as a method, with the signature and docstring of which TRL makes its description."""
    verb, argument = verb_of(task, party)
    place = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("self", place), Parameter(argument, place, annotation=str)]
    signature = Signature(parameters, return_annotation=str)

    def tool(*args: Any, **kwargs: Any) -> str:
        dialogue, text = signature.bind(*args, **kwargs).arguments.values()
        return str(dialogue._say(text))

    tool.__name__ = tool.__qualname__ = verb
    tool.__doc__ = (
        f"{rules_of(task, party)}\n\nArgs:\n    {argument}: Text of at most "
        f"{task.facts.longest[party]} characters.\n\nReturns:\n    The answer."
    )
    tool.__signature__ = signature  # type: ignore[attr-defined]
    tool.__annotations__ = {argument: str, "return": str}
    return tool
