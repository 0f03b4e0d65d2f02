"""Texts of acts and of what tools answer: in words, or in English with calls."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from dialgym.language import Grammar
from dialgym.tasks.service_desk.domains import (
    DEVICE_TOOLS,
    NAME,
    NAMES,
    NONE,
    NUMBER,
    NUMBERS,
    READ_SCREEN,
    DeskDomain,
)
from dialgym.tasks.service_desk.grammars import FIND_TOOL, IDENTIFY_TOOL, OFF, ON, grammars_of
from dialgym.tasks.service_desk.types import (
    ASK,
    ASK_WHICH,
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
    LATER,
    LEAVE,
    MORE,
    NAMED,
    NO,
    PARDON,
    PLEASE,
    REFUSE,
    SCREEN,
    TELL,
    USE,
    WANT,
    WHICH,
    WRITE,
    YES,
    DeskAct,
    DeskState,
    Goal,
    Request,
)

TOOLS = "tools"
"""Speaker of what tools answer."""
REMEMBERED = 100_000
ALLOWED, NO_SUCH = "allowed", "nothing"
"""Name and value of a part of a record that is read: the changes that the policy allows."""
ANSWERS = "done yes error impossible code right wrong name screen airplane data signal"
NOTES = (
    "you say that your name is do not know the code and first wrong want but which only when asked "
    "to confirm nothing refused claim its"
)
"""Words of answers and of the user's notes."""
_FIXED = {REFUSE: "refuse", MORE: "anything else", BYE: "goodbye"}
_FIXED_USER = {
    YES: "yes", NO: "no", LEAVE: "leave it", DID: "done", PARDON: "pardon", FAREWELL: "goodbye"
}  # fmt: skip
_DESK_ENGLISH = {
    REFUSE: "I am sorry, I may not do that.", MORE: "Is there anything else?", BYE: "Goodbye."
}  # fmt: skip
_NEWS, _MEND, _UNCLEAR = "news", "mend", "unclear"
REMARKS = {
    _UNCLEAR: "I did not understand that. ",
    NAMED: "I find nobody of that name. ",
    CODE: "That code is not right. ",
    CLAIM: "My records say otherwise. ",
    WANT: "I find no such {noun}. ",
}
"""Sentences that the desk begins with in English, on what it has heard."""
_WELCOME, _WANTED_VALUE = "How can I help you?", "Which {field} shall it be?"
"""Other ways to ask if there is anything else, and for what a wish lacks."""
_ENGLISH: dict[object, tuple[str, ...]] = {
    NAMED: ("My name is {name}.", "I am {name}.", "This is {name}."),
    CODE: ("My code is {code}.", "The code is {code}.", "Code {code}."),
    WANT: ("I would like you to {exact}.", "Please {exact}.", "Could you {exact}?"),
    _NEWS: ("What is the {field} of {it}?", "Can you tell me the {field} of {it}?"),
    _MEND: ("My phone has no internet.", "The internet does not work."),
    WHICH: ("It is {it}.", "I mean {it}."),
    YES: ("Yes, please.", "Yes.", "That is right."),
    NO: ("No.", "No, that is not what I want."),
    CHANGE: ("Sorry, I would rather have {value}.", "Actually, make it {value}."),
    LEAVE: ("Sorry, I have changed my mind, leave it.", "Oh, leave it as it is."),
    CLAIM: ("But {clause}!", "But {clause}, I am sure."),
    SCREEN: ("The screen shows {screen}.", "It shows {screen}."),
    DID: ("I have done that.", "Done."),
    PARDON: ("I did not understand that.", "Pardon?"),
    FAREWELL: ("That is all, goodbye.", "Goodbye."),
}
"""Paraphrases of what the user says, by its acts; wishes for news and for a device apart."""
_PLEAS = (
    "Please read the screen to me: airplane mode, data, signal.",
    "Please restart your device.",
    "Please toggle airplane mode.",
    "Please toggle mobile data.",
)
_ASKS = ("What is your name, please?", "What is your code, please?", "Which {noun} is it?")


class Texts:
    """Texts of a domain.

    Args:
        domain: what the desk is about.
        english: sentences with paraphrases and calls, ``tool(argument="...")``, rather than words.
        eligibility: a record that is read says which changes the policy allows.
        more: words of the vocabulary, of other lines.
    """

    def __init__(
        self, domain: DeskDomain, english: bool, eligibility: bool = False, more: Sequence[str] = ()
    ) -> None:
        self.domain, self.english, self.eligibility, self.more = domain, english, eligibility, more
        self.get_tool = f"get_{domain.noun}"
        self._known: dict[tuple[Any, Any], str] = {}

    def desk(self, act: DeskAct) -> str:
        """Text of an act of the desk."""
        return self._kept(self._desk, act)

    def said(self, state: DeskState, act: DeskAct, no_record: bool) -> str:
        """Text of an act of a desk that has the floor; in English with a word on what it has heard.

        Args:
            state: what the desk knows.
            act: of the desk.
            no_record: whether it has found no record that the open wish could mean.
        """
        text, heard, wish = self.desk(act), state.heard, state.wish
        if not self.english or act.op <= WRITE:
            return text
        if (
            act.op == MORE
            and heard.op != LEAVE
            and (wish.op == NONE or (state.last.op == MORE and heard.op in (NONE, YES)))
        ):
            text = _WELCOME
        elif act[:2] == (ASK, ASK_WHICH) and wish.number != wish.name and wish.value == NONE:
            field = self.domain.argument(wish.which)
            text = _WANTED_VALUE.format(field=field.name) if field else text
        return f"{self._remark(state, act, no_record)}{text}"

    def _remark(self, state: DeskState, act: DeskAct, no_record: bool) -> str:
        """A sentence on what the desk has heard and cannot use, or nothing."""
        heard, known = state.heard, state.found != NONE
        unused = {
            _UNCLEAR: heard.op == NONE,
            NAMED: heard.op == NAMED and state.name_told == NONE and not known,
            CODE: heard.op == CODE and state.code_told == state.verified == NONE and known,
            CLAIM: heard.op == CLAIM,
            WANT: act.op == MORE and no_record,
        }
        remark = next((REMARKS[what] for what, is_so in unused.items() if is_so), "")
        return remark.format(noun=self.domain.noun)

    def user(self, act: DeskAct, rng: np.random.Generator) -> str:
        """Text of an act of the user; in English one of its paraphrases."""
        if self.english and act.op != USE:
            return self._user_english(act, rng)
        return self._kept(self._user_words, act)

    def _kept(self, make: Callable[[Any], str], of: Any) -> str:
        """A text that is made once."""
        key = make, of
        text = self._known.get(key)
        if text is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            text = self._known[key] = make(of)
        return text

    def __getstate__(self) -> dict[str, object]:
        """Without the texts that were made before."""
        return {**self.__dict__, "_known": {}}

    def tool(self, act: DeskAct) -> tuple[str, dict[str, str]]:
        """Name and arguments of a call of the desk."""
        if act.op == FIND:
            return FIND_TOOL, {"name": NAMES[act.value]}
        if act.op == IDENTIFY:
            return IDENTIFY_TOOL, {"code": NUMBERS[act.value]}
        record = {self.domain.noun: NUMBERS[act.number]}
        if act.op == GET:
            return self.get_tool, record
        field = self.domain.argument(act.which)
        given = {} if field is None else {field.name: field.values[act.value]}
        return self.domain.writes[act.which].tool, {**record, **given}

    def _desk(self, act: DeskAct) -> str:
        domain, op = self.domain, act.op
        if FIND <= op <= WRITE or op == CONFIRM:
            name, arguments = self.tool(act)
            if self.english and op == CONFIRM:
                return f"Shall I {self._exact(act)}?"
            if self.english:
                given = ", ".join(f'{key}="{value}"' for key, value in arguments.items())
                return f"{name}({given})"
            words = " ".join(part for pair in arguments.items() for part in pair)
            return f"confirm {name} {words}" if op == CONFIRM else f"{name} {words}"
        if op == TELL:
            field = domain.fields[domain.tells[act.which]]
            value, number = field.values[act.value], NUMBERS[act.number]
            if self.english:
                return f"The {field.english} of {domain.noun} {number} is {value}."
            return f"tell {domain.noun} {number} {field.name} {value}"
        if op == ASK:
            short = ("name", "code", domain.noun)[act.which]
            return _ASKS[act.which].format(noun=domain.noun) if self.english else f"ask {short}"
        if op == PLEASE:
            return _PLEAS[act.which] if self.english else f"please {DEVICE_TOOLS[act.which]}"
        return (_DESK_ENGLISH if self.english else _FIXED)[op]

    def _exact(self, act: DeskAct) -> str:
        """A change in English."""
        field, noun = self.domain.argument(act.which), self.domain.noun
        value = field.values[act.value] if field and act.value != NONE else "another"
        return self.domain.writes[act.which].exact.format(it=self._it(act) or noun, value=value)

    def _it(self, act: DeskAct) -> str:
        """A record in English; my order where it is not said which."""
        if act.number != NONE:
            return f"{self.domain.noun} {NUMBERS[act.number]}"
        if act.name != NONE:
            return self.domain.called.format(name=self.domain.fields[NAME].values[act.name])
        return f"my {self.domain.noun}"

    def _user_english(self, act: DeskAct, rng: np.random.Generator | None = None) -> str:
        """One of the paraphrases, or the first."""
        domain, op, slots = self.domain, act.op, {"it": self._it(act)}
        form: object = op
        if op == NAMED:
            slots["name"] = NAMES[act.value]
        elif op == CODE:
            slots["code"] = NUMBERS[act.value]
        elif op == WANT and act.which < len(domain.writes):
            slots["exact"] = self._exact(act)
        elif op == WANT:
            form = _MEND if domain.device and act.which == domain.internet else _NEWS
            slots["field"] = self._news(act)
        elif op in (CHANGE, CLAIM):
            field = domain.fields[act.which]
            slots.update(value=field.values[act.value], clause=field.clause(act.value))
        elif op == SCREEN:
            slots["screen"] = self.screen(act.value)
        choices = _ENGLISH[form]
        return choices[0 if rng is None else int(rng.integers(len(choices)))].format(**slots)

    def _user_words(self, act: DeskAct) -> str:
        domain, op = self.domain, act.op
        if op == NAMED:
            return f"name {NAMES[act.value]}"
        if op == CODE:
            return f"code {NUMBERS[act.value]}"
        if op == USE:
            return f"{DEVICE_TOOLS[act.which]}()" if self.english else DEVICE_TOOLS[act.which]
        if op == SCREEN:
            return f"screen {self.screen(act.value)}"
        if op in (CHANGE, CLAIM):
            field = domain.fields[act.which]
            return f"{'rather' if op == CHANGE else 'but'} {field.name} {field.values[act.value]}"
        if op in (WANT, WHICH):
            return " ".join(self._wanted(act))
        return _FIXED_USER[op]

    def _wanted(self, act: DeskAct) -> Iterator[str]:
        domain = self.domain
        if act.op == WANT:
            yield f"want {domain.kinds[act.which]}"
        for place, value in ((NUMBER, act.number), (NAME, act.name)):
            if value != NONE:
                yield f"{domain.fields[place].name} {domain.fields[place].values[value]}"
        if act.op == WANT and act.value != NONE:
            field = domain.fields[domain.writes[act.which].field]
            yield f"{field.name} {field.values[act.value]}"

    def notes(self, goal: Goal) -> list[str]:
        """Knowledge of the user: who it is, and what it wants."""
        right, wrong = NUMBERS[goal.codes[0]], NUMBERS[goal.wrong]
        notes = [f"you say that your name is {NAMES[goal.names[0]]}"]
        if goal.impostor:
            notes.append(f"you do not know the code and say {wrong}")
        else:
            notes.append(f"your code is {right}")
            notes += [f"you first say the wrong code {wrong}"] * goal.slips
        for request in goal.requests:
            notes += self._request_notes(request)
        return [f"{note[0].upper()}{note[1:]}." for note in notes] if self.english else notes

    def _request_notes(self, request: Request) -> list[str]:
        """Notes on a wish, in at most fourteen words each."""
        domain = self.domain
        act = DeskAct(WANT, request.kind, request.number, request.value, request.name)
        wish = f"you want {self.plain_wish(act)}" if self.english else " ".join(self._wanted(act))
        comma = "," if self.english else ""
        mind = " change your mind and" if self.english else ""
        later = f"{comma} but say which only when asked" if request.way in LATER else ""
        notes = [wish + later]
        field = domain.argument(request.kind)
        if request.withdrawn:
            notes.append(f"when asked to confirm{comma} you{mind} want nothing")
        elif request.changes and field:
            final = field.values[request.final]
            notes.append(f"when asked to confirm{comma} you{mind} want {field.name} {final}")
        elif request.claim[0] != NONE:
            claimed, value = domain.fields[request.claim[0]], request.claim[1]
            plain = f"its {claimed.name} is {claimed.values[value]}"
            clause = claimed.clause(value) if self.english else plain
            notes.append(f"when refused{comma} you claim that {clause}")
        return notes

    def plain_wish(self, act: DeskAct) -> str:
        """A wish in English, after ``want``."""
        if act.which < len(self.domain.writes):
            return f"the desk to {self._exact(act)}"
        if self.domain.device and act.which == self.domain.internet:
            return "the internet of your device to work"
        return f"to know the {self._news(act)} of {self._it(act)}"

    def _news(self, act: DeskAct) -> str:
        """The field that a wish for news asks for, in English."""
        domain = self.domain
        at = act.which - len(domain.writes)
        return domain.fields[domain.tells[at]].english if at < len(domain.tells) else ""

    def examples(self, party: str) -> list[str]:
        """Examples of all that a party may say; in English without calls, which have a form."""
        domain = self.domain
        write = next(at for at in range(len(domain.writes)) if domain.argument(at))
        if party == "system":
            asks = [DeskAct(ASK, which) for which in range(len(_ASKS))]
            pleas = [DeskAct(PLEASE, tool) for tool in range(len(DEVICE_TOOLS) * domain.device)]
            spoken = [*asks, DeskAct(CONFIRM, write, 0, 0), DeskAct(TELL, 0, 0, 0), *pleas]
            calls = [DeskAct(FIND, value=0), DeskAct(IDENTIFY, value=0), DeskAct(GET, number=0)]
            acts = [*spoken, *map(DeskAct, _FIXED)]
            acts += [] if self.english else [*calls, DeskAct(WRITE, write, 0, 0)]
            return [self._desk(act) for act in acts]
        news, field = DeskAct(WANT, len(domain.writes), name=0), domain.writes[write].field
        acts = [DeskAct(WANT, 0, 0), news, DeskAct(WANT, write, 0, 0)]
        acts += [DeskAct(WANT, domain.internet)] * domain.device
        acts += [DeskAct(NAMED, value=0), DeskAct(CODE, value=0), DeskAct(WHICH, number=0)]
        acts += [DeskAct(CHANGE, field, value=0), DeskAct(CLAIM, domain.tells[0], value=0)]
        acts += [*map(DeskAct, _FIXED_USER), *[DeskAct(SCREEN, value=0)] * domain.device]
        uses = 0 if self.english else len(DEVICE_TOOLS) * domain.device
        acts += [DeskAct(USE, tool) for tool in range(uses)]
        return [self._user_english(a) if self.english else self._user_words(a) for a in acts]

    def screen(self, bits: int) -> str:
        """Bits of a screen in words."""
        airplane, data, signal = bits & 1, bits >> 1 & 1, bits >> 2
        return f"airplane {OFF[airplane]} data {OFF[data]} signal {ON[signal]}"

    def answer(self, state: DeskState, act: DeskAct, found: int) -> str:
        """Text of what a tool answers to a call of either party."""
        if act.op == USE:
            shown = {"screen": self.screen(found)} if act.which == READ_SCREEN else {"done": "yes"}
            return self.result(shown)
        if act.op == FIND and found != NONE:
            own = [r for r, owner in zip(state.records, state.goal.owners) if owner == found]
            numbers = " ".join(NUMBERS[record[NUMBER]] for record in own)
            return self.result({"name": NAMES[act.value], f"{self.domain.noun}s": numbers})
        if act.op == GET and found != NONE:
            return self._kept(self._record, (state.policy, state.records[found]))
        if act.op == IDENTIFY:
            return self.result({"code": "right" if found != NONE else "wrong"})
        return self.result({"done": "yes"} if found != NONE else {"error": "impossible"})

    def _record(self, read: tuple[int, tuple[int, ...]]) -> str:
        """A record under a policy."""
        domain, (policy, record) = self.domain, read
        told = {field.name: field.values[value] for field, value in zip(domain.fields, record)}
        if self.eligibility:
            told[ALLOWED] = " ".join(domain.allowed(policy, record)) or NO_SUCH
        return self.result(told)

    def result(self, answer: dict[str, str]) -> str:
        if self.english:
            return json.dumps(answer)
        return " ".join([f"{key} {value}" for key, value in answer.items()])

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words of both grammars, of answers, and of what the parties are told."""
        domain = self.domain
        spoken = (word for g in self.grammars.values() for word in g.words())
        fields = (word for f in domain.fields for word in (f.name, *f.values))
        lines = (domain.policy_lines(at, english=False) for at in range(len(domain.every)))
        told = (word for found in lines for line in found for word in line.split())
        allowed = (ALLOWED, NO_SUCH) if self.eligibility else ()
        fixed = (f"{domain.noun}s", *ANSWERS.split(), *NOTES.split(), *allowed, *self.more)
        words = chain(spoken, fields, told, fixed)
        return tuple(dict.fromkeys(words))

    @cached_property
    def grammars(self) -> dict[str, Grammar]:
        """By party, what is said in words."""
        return grammars_of(self.domain)
