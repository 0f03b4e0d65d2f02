"""Tools of both parties in OpenAI's schema, and as lines of a brief."""

from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.tasks.service_desk.domains import DEVICE_TOOLS, NAMES, NUMBERS, DeskDomain
from dialgym.tasks.service_desk.grammars import FIND_TOOL, IDENTIFY_TOOL

Schema = Mapping[str, Any]
_OF_DEVICE = (
    "Read the screen of your device.",
    "Restart your device.",
    "Switch airplane mode of your device on or off.",
    "Switch mobile data of your device on or off.",
)


def tools_of(domain: DeskDomain) -> dict[str, list[Schema]]:
    """By party, its tools in OpenAI's schema; those that change the database last."""
    noun = domain.noun
    record = {noun: _string(f"The number of the {noun}, two digits.")}
    desk = [
        _tool(
            FIND_TOOL,
            f"Find a customer by the full name; answers with the numbers of the {noun}s.",
            {"name": _string(f"First and last name, such as {NAMES[0]}.")},
        ),
        _tool(
            IDENTIFY_TOOL,
            "Check the code of the customer who was found last.",
            {"code": _string(f"The code, such as {NUMBERS[0]}.")},
        ),
        _tool(f"get_{noun}", f"Read all fields of the {noun}.", record),
    ]
    for at, write in enumerate(domain.writes):
        field = domain.argument(at)
        given = {field.name: {**_string("The new one."), "enum": [*field.values]}} if field else {}
        phrase = write.phrase.format(it=f"the {noun}")
        about = f"{phrase[0].upper()}{phrase[1:]}. Changes the database."
        desk.append(_tool(write.tool, about, {**record, **given}))
    device = [_tool(name, about, {}) for name, about in zip(DEVICE_TOOLS, _OF_DEVICE)]
    return {"system": desk, **({"user": device} if domain.device else {})}


def _string(about: str) -> dict[str, Any]:
    return {"type": "string", "description": about}


def _tool(name: str, about: str, arguments: Mapping[str, Any]) -> Schema:
    form = {
        "type": "object",
        "properties": dict(arguments),
        "required": [*arguments],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": form},
    }


def call_lines(tools: Sequence[Schema]) -> list[str]:
    """Sentences that name the tools, and how they are called."""
    lines = []
    for tool in tools:
        function = tool["function"]
        arguments = ", ".join(f'{name}="..."' for name in function["parameters"]["properties"])
        lines.append(f"{function['name']}({arguments}): {function['description']}")
    return ["Tools, each call a turn of its own:", *lines]
