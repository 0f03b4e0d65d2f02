"""Grammars of a domain: what either party may say in words."""

from dialgym.language import Grammar
from dialgym.tasks.service_desk.domains import (
    DEVICE_TOOLS,
    FIRST_NAMES,
    LAST_NAMES,
    NAME,
    NUMBER,
    NUMBERS,
    DeskDomain,
)

FIND_TOOL, IDENTIFY_TOOL = "find_customer", "identify"
OFF, ON = ("off", "on"), ("none", "full")
"""Words of a screen."""


def grammars_of(domain: DeskDomain) -> dict[str, Grammar]:
    """By party, what is said in words."""
    nodes: dict[str, dict[str, str]] = {"end": {}}
    for field in domain.fields:
        nodes[f"{field.name}="] = dict.fromkeys(field.values, "end")
        nodes[f"{field.name}:"] = {field.name: f"{field.name}="}
    nodes["last"] = dict.fromkeys(LAST_NAMES, "end")
    nodes["first"] = dict.fromkeys(FIRST_NAMES, "last")
    nodes["name:"], nodes["code="] = {"name": "first"}, dict.fromkeys(NUMBERS, "end")
    nodes["code:"] = {"code": "code="}
    user = {**nodes, **_user_nodes(domain)}
    return {
        "system": Grammar({**nodes, **_desk_nodes(domain)}, "start", ["end"]),
        "user": Grammar(user, "start", ["end", "want", "named"]),
    }


def _desk_nodes(domain: DeskDomain) -> dict[str, dict[str, str]]:
    noun = domain.noun
    start = {FIND_TOOL: "name:", IDENTIFY_TOOL: "code:", f"get_{noun}": f"{noun}:"}
    changes = {write.tool: f"{write.tool}:" for write in domain.writes}
    nodes = {"change": changes, "tell": {noun: "tell="}}
    for at, write in enumerate(domain.writes):
        field = domain.argument(at)
        after = "end" if field is None else f"{field.name}:"
        nodes[f"{write.tool}:"] = {noun: f"{write.tool}="}
        nodes[f"{write.tool}="] = dict.fromkeys(NUMBERS, after)
    nodes["tell="] = dict.fromkeys(NUMBERS, "told")
    told = [domain.fields[field].name for field in domain.tells]
    nodes["told"] = {name: f"{name}=" for name in told}
    nodes["ask"] = dict.fromkeys(("name", "code", noun), "end")
    nodes["else"] = {"else": "end"}
    start |= {**changes, "confirm": "change", "tell": "tell", "ask": "ask", "refuse": "end"}
    start |= {"anything": "else", "goodbye": "end"}
    if domain.device:
        nodes["please"] = dict.fromkeys(DEVICE_TOOLS, "end")
        start["please"] = "please"
    return {**nodes, "start": start}


def _user_nodes(domain: DeskDomain) -> dict[str, dict[str, str]]:
    noun, name = domain.fields[NUMBER].name, domain.fields[NAME].name
    arguments = [f.name for f in map(domain.argument, range(len(domain.writes))) if f]
    then = {argument: f"{argument}=" for argument in dict.fromkeys(arguments)}
    which = {noun: "number=", name: "name="}
    said = {field.name: f"{field.name}=" for field in domain.fields[2:]}
    nodes = {
        "wants": dict.fromkeys(domain.kinds, "want"),
        "want": {**which, **then},
        "number=": dict.fromkeys(NUMBERS, "named"),
        "name=": dict.fromkeys(domain.fields[NAME].values, "named"),
        "named": then,
        "rather": then,
        "but": said,
        "it": {"it": "end"},
        "screen": {"airplane": "a"},
        "a": dict.fromkeys(OFF, "a."),
        "a.": {"data": "d"},
        "d": dict.fromkeys(OFF, "d."),
        "d.": {"signal": "s"},
        "s": dict.fromkeys(ON, "end"),
    }
    start = {"name": "first", "code": "code=", "want": "wants", "rather": "rather"}
    start |= {**which, "but": "but", "leave": "it"}
    start |= dict.fromkeys(("yes", "no", "done", "pardon", "goodbye"), "end")
    if domain.device:
        start |= {"screen": "screen", **dict.fromkeys(DEVICE_TOOLS, "end")}
    return {**nodes, "start": start}
