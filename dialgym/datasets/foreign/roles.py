"""Names of roles in dialogues: assistants, users, and others such as system and tool."""

from collections.abc import Sequence

from dialgym.tasks.base import SYSTEM

MODELS = {"assistant", "agent", "bot", "model", "gpt", "chatgpt", "chatbot", "ai", "sys", "wizard"}
PEOPLE = {"user", "human", "customer", "client", "usr", "apprentice", "caller", "visitor"}
ASIDES = {"system", "developer", "tool", "function", "prompt", "ipython", "environment"}
ASIDES |= {"function_call", "observation", "tool_call", "tool_response", "tool_result"}
"""Roles beside those of the two who talk, where a model is one of them."""
ROLES = MODELS | PEOPLE | ASIDES | {SYSTEM}
NAME_WORDS = 4
"""Of a speaker's name, at most."""


def folded(name: object) -> str:
    """A name as it is compared: without regard to case."""
    return str(name).strip().lower()


def is_role(name: object) -> bool:
    """Return True if a name is that of a role, and not of a person or of an event."""
    return isinstance(name, str) and folded(name) in ROLES


def are_names(first: Sequence[str | None]) -> bool:
    """Return True if the first texts of pairs name speakers: as roles do, or by coming again."""
    names = [folded(name) for name in first if name]
    if any(map(is_role, names)):
        return True
    return len({*names}) < len(names) and all(len(n.split()) <= NAME_WORDS for n in names)
