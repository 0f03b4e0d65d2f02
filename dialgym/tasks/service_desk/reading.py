"""Reading of texts as acts, by rules: words, calls of tools, JSON, and English."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.language.spelled_numbers import in_digits
from dialgym.language.text import plain
from dialgym.tasks.service_desk.domains import (
    DEVICE_TOOLS,
    NAME,
    NAMES,
    NONE,
    NUMBER,
    NUMBERS,
    DeskDomain,
)
from dialgym.tasks.service_desk.grammars import FIND_TOOL, IDENTIFY_TOOL
from dialgym.tasks.service_desk.texts import Texts
from dialgym.tasks.service_desk.types import (
    ASK,
    BYE,
    CHANGE,
    CLAIM,
    CODE,
    CONFIRM,
    DID,
    FAREWELL,
    FIND,
    GET,
    IDENTIFY,
    LEAVE,
    MORE,
    NAMED,
    NO,
    NOTHING,
    PARDON,
    PLEASE,
    REFUSE,
    TELL,
    USE,
    WANT,
    WHICH,
    WRITE,
    YES,
    DeskAct,
)
from dialgym.tasks.service_desk.understanding import EnglishReader

REMEMBERED = 100_000
_ZEROS = re.compile(r"\b0+(?=\d)")
_CALL = re.compile(r"(\w+)\s*\(([^()]*)\)\.?")
_ARGUMENT = re.compile(r"(\w+)\s*[=:]\s*(?:\"([^\"]*)\"|'([^']*)'|([\w -]+))")


def normalised(text: str) -> str:
    """A text in lower case and ASCII, its numbers in digits without leading zeros."""
    return _ZEROS.sub("", in_digits(plain(text).lower()))


class Reader:
    """Reads texts of both parties of a domain.

    In order: a text of words itself; a call, ``tool(argument="...")`` or JSON with ``name`` and
    ``arguments``, anywhere in a text that has nothing else; English, by keywords
    (`understanding.EnglishReader`). Any spelling of a number is that number. What remains is not
    understood (`DeskAct` without an `op`).
    """

    def __init__(self, domain: DeskDomain) -> None:
        self.domain = domain
        self._known: dict[tuple[Any, ...], DeskAct] = {}
        self._english = EnglishReader(domain)
        self._writes = {write.tool: at for at, write in enumerate(domain.writes)}
        self._get = f"get_{domain.noun}"

    def __getstate__(self) -> dict[str, object]:
        """Without what was read before."""
        return {**self.__dict__, "_known": {}}

    def read(self, party: str, text: str, last: DeskAct = NOTHING) -> DeskAct:
        """The act of a text of a party; a user's English after the last act of the desk."""
        act = self._known.get((party, text))
        return self._read(party, text, last) if act is None else act

    def _read(self, party: str, text: str, last: DeskAct) -> DeskAct:
        key: tuple[Any, ...] = party, text, last[:2]
        act = self._known.get(key)
        if act is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            desk, said = party == "system", normalised(text).strip()
            act = self._words(desk, said.split())
            if act.op == NONE:
                act = self._call(desk, said)
            if act.op != NONE:  # whatever was said before
                key = party, text
            else:
                act = self._english.desk(said) if desk else self._english.user(said, last)
            self._known[key] = act
        return act

    def _place(self, field: int, value: str) -> int:
        return _place(self.domain.fields[field].values, value)

    def _words(self, desk: bool, words: Sequence[str]) -> DeskAct:
        """The act of a text in words, as the grammar has it."""
        if not words:
            return DeskAct()
        first, rest = words[0], words[1:]
        if not desk:
            return self._user_words(first, rest)
        fixed = {"refuse": REFUSE, "goodbye": BYE, "anything": MORE}
        if first in fixed and rest == (["else"] if first == "anything" else []):
            return DeskAct(fixed[first])
        if first == "please" and len(rest) == 1 and rest[0] in DEVICE_TOOLS and self.domain.device:
            return DeskAct(PLEASE, DEVICE_TOOLS.index(rest[0]))
        questions = ("name", "code", self.domain.noun)
        if first == "ask" and len(rest) == 1 and rest[0] in questions:
            return DeskAct(ASK, questions.index(rest[0]))
        if first == "tell" and len(rest) == 4:
            return self._told(rest)
        if first == FIND_TOOL and len(rest) == 3:
            rest = [rest[0], " ".join(rest[1:])]
        if first == "confirm" and rest and len(rest) % 2:
            return self._tool(rest[0], dict(zip(rest[1::2], rest[2::2])))._replace(op=CONFIRM) if (
                rest[0] in self._writes
            ) else DeskAct()  # fmt: skip
        return (
            self._tool(first, dict(zip(rest[::2], rest[1::2]))) if len(rest) % 2 == 0 else DeskAct()
        )

    def _told(self, words: Sequence[str]) -> DeskAct:
        noun, number, field, value = words
        names = [self.domain.fields[at].name for at in self.domain.tells]
        if noun != self.domain.noun or field not in names:
            return DeskAct()
        which = names.index(field)
        found = self._place(self.domain.tells[which], value)
        return DeskAct(TELL, which, self._place(NUMBER, number), found)

    def _tool(self, name: str, arguments: Mapping[str, str]) -> DeskAct:
        """The act of a call, with impossible values as NONE; none where the form is wrong."""
        domain, noun = self.domain, self.domain.noun
        given = set(arguments)
        if name == FIND_TOOL and given == {"name"}:
            return DeskAct(FIND, value=_place(NAMES, arguments["name"]))
        if name == IDENTIFY_TOOL and given == {"code"}:
            return DeskAct(IDENTIFY, value=_place(NUMBERS, arguments["code"]))
        number = self._place(NUMBER, arguments.get(noun, ""))
        if name == self._get and given == {noun}:
            return DeskAct(GET, number=number)
        at = self._writes.get(name, NONE)
        field = domain.argument(at)
        if at == NONE or given != ({noun} if field is None else {noun, field.name}):
            return DeskAct()
        value = NONE if field is None else _place(field.values, arguments[field.name])
        return DeskAct(WRITE, at, number, value)

    def _call(self, desk: bool, text: str) -> DeskAct:
        name, arguments = _call_of(text)
        if desk:
            return self._tool(name, arguments)
        if self.domain.device and name in DEVICE_TOOLS and not arguments:
            return DeskAct(USE, DEVICE_TOOLS.index(name))
        return DeskAct()

    def _user_words(self, first: str, rest: Sequence[str]) -> DeskAct:
        domain = self.domain
        fixed = {"yes": YES, "no": NO, "done": DID, "pardon": PARDON, "goodbye": FAREWELL}
        if first in fixed and not rest:
            return DeskAct(fixed[first])
        if first == "leave" and list(rest) == ["it"]:
            return DeskAct(LEAVE)
        if first in DEVICE_TOOLS and not rest and domain.device:
            return DeskAct(USE, DEVICE_TOOLS.index(first))
        if first == "name" and len(rest) == 2:
            found = _place(NAMES, " ".join(rest))
            return DeskAct(NAMED, value=found) if found != NONE else DeskAct()
        if first == "code" and len(rest) == 1 and rest[0] in NUMBERS:
            return DeskAct(CODE, value=_place(NUMBERS, rest[0]))
        names = [field.name for field in domain.fields]
        if first in ("rather", "but") and len(rest) == 2 and rest[0] in names:
            at = names.index(rest[0])
            value = self._place(at, rest[1])
            op = CHANGE if first == "rather" else CLAIM
            return DeskAct(op, at, value=value) if value != NONE else DeskAct()
        number, name = domain.fields[NUMBER].name, domain.fields[NAME].name
        if first in (number, name) and len(rest) == 1:
            at = names.index(first)
            value = self._place(at, rest[0])
            places = {"number": value} if at == NUMBER else {"name": value}
            return DeskAct(WHICH, **places) if value != NONE else DeskAct()
        if first == "want" and rest and rest[0] in domain.kinds and len(rest) % 2:
            return self._wanted(domain.kinds.index(rest[0]), dict(zip(rest[1::2], rest[2::2])))
        return DeskAct()

    def _wanted(self, kind: int, given: Mapping[str, str]) -> DeskAct:
        domain = self.domain
        number, name = (domain.fields[at].name for at in (NUMBER, NAME))
        field = domain.argument(kind)
        value = _place(field.values, given.get(field.name, "")) if field else NONE
        named = self._place(NUMBER, given.get(number, "")), self._place(NAME, given.get(name, ""))
        return DeskAct(WANT, kind, named[0], value, named[1])


def _call_of(text: str) -> tuple[str, dict[str, str]]:
    """Name and arguments of a call that is all of a text; "" where it is none."""
    found = _CALL.fullmatch(text)
    if found:
        given = _ARGUMENT.findall(found[2])
        rest = _ARGUMENT.sub("", found[2]).replace(",", "").strip()
        pairs = {key: "".join(values).strip() for key, *values in given}
        return ("", {}) if rest else (found[1], pairs)
    if not text.startswith("{"):
        return "", {}
    try:
        call = json.loads(text)
        arguments = call.get("arguments", {})
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        return str(call.get("name", "")), {str(k): str(v) for k, v in arguments.items()}
    except (ValueError, AttributeError, RecursionError):
        return "", {}


def _place(values: Sequence[str], value: str) -> int:
    return values.index(value) if value in values else NONE


__all__ = ["Reader", "Texts", "normalised"]
