"""Reading of English as acts, by keywords."""

import re
from functools import cached_property

from dialgym.language.spelling import SpellingMender
from dialgym.tasks.service_desk.domains import (
    AIRPLANE,
    DATA,
    NAME,
    NAMES,
    NONE,
    NUMBER,
    NUMBERS,
    READ_SCREEN,
    RESTART,
    DeskDomain,
    Field,
)
from dialgym.tasks.service_desk.texts import REMARKS
from dialgym.tasks.service_desk.types import (
    ASK,
    ASK_CODE,
    ASK_NAME,
    ASK_WHICH,
    BYE,
    CHANGE,
    CLAIM,
    CODE,
    CONFIRM,
    DID,
    FAREWELL,
    LEAVE,
    MORE,
    NAMED,
    NO,
    NOTHING,
    PARDON,
    PLEASE,
    REFUSE,
    SCREEN,
    TALK,
    TELL,
    USE,
    WANT,
    WHICH,
    WORKS,
    YES,
    DeskAct,
    screen_of,
)


def _any(*phrases: str) -> re.Pattern[str]:
    """Pattern of a text that has one of some phrases."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b")


def _begins(*phrases: str) -> re.Pattern[str]:
    """Pattern of a text that begins with one of some phrases."""
    return re.compile(rf"^\W*(?:(?:oh|well|sorry|ah),? )?(?:{'|'.join(phrases)})\b")


_SAME = {
    "can't": "cannot", "won't": "will not", "n't": " not", "'m": " am", "'d": " would",
    "what's": "what is", "that's": "that is", "it's": "it is", "name's": "name is",
    "color": "colour", "gray": "grey", "harbor": "harbour",
    "not on sale": "sale no", "on sale": "sale yes", "flight mode": "airplane mode",
    "off airplane mode": "airplane mode off", "on airplane mode": "airplane mode on",
}  # fmt: skip
"""Ways to write what is read in one way."""
_SAME_WAYS = re.compile("|".join(sorted(map(re.escape, _SAME), key=len, reverse=True)))
_NAME = _any(*NAMES)
_SOME_NAME = re.compile(r"(?:(?:my name is|i am|this is|it is) )?[a-z]+(?: [a-z]+){0,2}[.!]*")
_IS = r"\W*(?:is |was )?(?:turned |switched )?"
_AIRPLANE = re.compile(rf"\bairplane(?: mode)?{_IS}(on|off)\b")
_DATA = re.compile(rf"\bdata{_IS}(on|off)\b")
_SIGNAL = _any(rf"signal{_IS}(?:full|good|strong|fine)", "(?:full|good|all) (?:signal|bars)")
_NO_SIGNAL = _any("no (?:signal|bars?|reception|service)", rf"signal{_IS}none")
_WORKS = re.compile(
    r"^(?!.*\b(?:not|cannot|still|nothing|should|want|make)\b)"
    r".*\b(?:works|working|fixed|is back|online)\b"
)
_INTERNET = _any(
    "internet", "connection", "no (?:signal|bars?|reception|data)", "(?:get|go) online", "offline",
    "not work(?:ing)?",
)  # fmt: skip
_DEVICE = (
    (READ_SCREEN, re.compile(r"screen|^(?:is|are|what|does|do you)\b.*\b(?:airplane|data|signal)")),
    (RESTART, re.compile(r"re-?start|reboot|off and on")),
    (AIRPLANE, re.compile(r"\bairplane\b")),
    (DATA, re.compile(r"\bdata\b")),
)
_USES = _begins("(?:i (?:will )?)?(?:restart|reboot|toggle|switch|turn|read|look at|check)")
_QUESTION = re.compile(r"[^.!?]*\?")
_CONFIRMS = _any("(?:shall|should|may|can) i", "(?:do|would) you (?:want|like)", "confirm")
_MORE = _any("(?:any|some)thing (?:else|more)", "else", "i (?:help|do for) you")
_BYES = _any(
    "(?:good)?bye", "that(?: i|')s (?:all|it)", "that was all", "nothing (?:else|more)",
    "i am (?:done|finished)", "(?:all|good) for now", "have a (?:nice|good)",
)  # fmt: skip
_REFUSES = _any(
    "cannot", "may not", "will not", "not (?:allowed|able|possible|permitted)", "unable",
    "impossible", "refuse", "decline", "against (?:the|our) (?:rules|policy)",
)  # fmt: skip
_YES = _begins(
    "yes", "yeah", "yep", "yup", "y", "sure", "ok", "okay", "correct", "right", "exactly",
    "absolutely", "alright", "fine", "of course", "please do", "do (?:it|that)", "perfect",
    "that is (?:right|correct|fine)", "sounds good", "go ahead", "confirm(?:ed)?",
    "i (?:do|confirm|agree)",
)  # fmt: skip
_NO = _begins("no", "nope", "nah", "not", "wrong", "that is (?:not|wrong)")
_LEAVES = _any(
    "leave it", "chang(?:e|ed|ing) my mind", "never ?mind", "forget (?:it|that|about)", "keep it",
    "not want (?:it|that|this|anything)", "do nothing", "not bother", "stop",
)  # fmt: skip
_RATHER = _any("rather", "actually", "instead", "make (?:it|that)", "prefer")
_CLAIMS = re.compile(r"^(?:no,? )?(?:but|it is|its|it has)\b|\bi am sure\b|\bare you sure\b")
_PARDONS = re.compile(
    r"\bpardon\b|\bnot understand\b|\bsay (?:that )?again\b|^(?:what|huh|sorry)\W*$|\byou mean\b"
)
_DONE = "done|did|restarted|rebooted|switched|toggled|turned"
_DID = re.compile(
    rf"^(?:ok(?:ay)?,? )?(?:{_DONE})\b|\b(?:did|done) (?:that|it|so)\b"
    rf"|\bi (?:have |just |have just )?(?:{_DONE})\b"
)
_ASKING = re.compile(
    r"\?$|^(?:what|how|when|tell|give me|can you tell)\b|\b(?:want|like|need) to know\b|\bwonder"
)
_TALK = _begins(
    "hi", "hello", "hey", "good (?:morning|day|afternoon|evening)", "thanks?", "thank you",
    "thx", "cheers", "great", "how are you", "nice", "(?:please )?help",
)  # fmt: skip
_REMARKS = re.compile(
    "|".join(remark.strip().lower().format(noun=r"\w+") for remark in REMARKS.values())
)
_CODE = _any("code")
_LONE = re.compile(
    r"\b(?:no|the|an?|in|on|to|for|it|is|should|be|1|street|plan|please|colour|new|rather)\b|\W"
)
"""Words that may stand around an argument that is said alone."""
_COMMANDS = (
    "return refund exchange cancel address street price colour order line plan internet screen "
    "signal airplane restart roaming resume another please nothing anything else goodbye other "
    "older power short while write"
)
"""Words, beside values, to which spelling is mended, and others that are near to them."""


class EnglishReader:
    """Reads English of both parties of a domain.

    A text that is not understood is read again with its spelling mended.

    Args:
        domain: what is spoken about.
    """

    def __init__(self, domain: DeskDomain) -> None:
        self.domain = domain
        noun, fields = domain.noun, domain.fields
        self._record = re.compile(
            rf"(?:\b{noun}(?: is)?(?: (?:number|no\.?))?|\bnumber(?: is)?|#) ?#?(\d+)\b"
        )
        self._kinds = [re.compile(rf"\b(?:{w.verbs})") for w in domain.writes]
        self._undone = re.compile(
            rf"\bnot(?: want(?: you)? to)? (?:{'|'.join(w.verbs for w in domain.writes)})"
        )
        self._tells = [re.compile(fields[f].asked) for f in domain.tells]
        self._values = {f.name: _pattern(f) for f in fields}
        writes = enumerate(domain.writes)
        self._takes = {write.field: at for at, write in writes if domain.argument(at)}
        asked = "|".join(("1", *(fields[at].name for at in self._takes)))
        self._which = re.compile(rf"\b(?:which|what) (?:{noun}|{asked})\b|\b{noun} number\b")

    def desk(self, text: str) -> DeskAct:
        """The act of a desk's text, which is normalised."""
        text = _REMARKS.sub("", _same(text)).strip()
        act = self._desk(text)
        return act if act.op != NONE else self._desk(self._spelling.mend(text))

    def user(self, text: str, last: DeskAct = NOTHING) -> DeskAct:
        """The same of a user, after an act of the desk, by which short answers are understood."""
        text = _same(text)
        act = self._user(text, last)
        if act.op in (NONE, WHICH, CODE):  # of which the last two may be all that was spelt well
            mended = self._user(self._spelling.mend(text), last)
            act = mended if mended.op == WANT or act.op == NONE else act
        if act.op == NONE and last[:2] == (ASK, ASK_NAME) and _SOME_NAME.fullmatch(text):
            return DeskAct(NAMED)
        return act

    @cached_property
    def _spelling(self) -> SpellingMender:
        values = (value for field in self.domain.fields for value in field.values)
        return SpellingMender({*" ".join((*NAMES, *values)).split(), *_COMMANDS.split()})

    def _place(self, field: int, value: str) -> int:
        values = self.domain.fields[field].values
        return values.index(value) if value in values else NONE

    def _number(self, text: str, bare: bool = False) -> int:
        """The number of a record; of a `bare` one the noun may be missing."""
        found = self._record.findall(text) or (re.findall(r"\b\d\d\b", text) if bare else [])
        return self._place(NUMBER, found[-1]) if found else NONE

    def _change(self, text: str) -> tuple[int, int]:
        """The write that English words name, and its argument; NONE for what is not said."""
        for at, pattern in enumerate(self._kinds):
            if pattern.search(text):
                return at, self._value(self.domain.argument(at), text)
        return NONE, NONE

    def _value(self, field: Field | None, text: str) -> int:
        found = self._values[field.name].findall(text) if field else []
        return field.values.index(found[-1]) if field and found else NONE

    def _desk(self, text: str) -> DeskAct:
        if _REFUSES.search(text):
            return DeskAct(REFUSE)
        told = self._telling(_QUESTION.sub("", text))
        if told.op != NONE:
            return told
        if _MORE.search(text):
            return DeskAct(MORE)
        write, value = self._change(text)
        if write != NONE and (_CONFIRMS.search(text) or text.endswith("?")):
            number = self._number(text, bare=True)
            if number != NONE:
                return DeskAct(CONFIRM, write, number, value)
        for tool, pattern in _DEVICE if self.domain.device else ():
            if pattern.search(text):
                return DeskAct(PLEASE, tool)
        if re.search(r"\byour (?:\w+ )?name\b|\bwho (?:are you|am i)\b|^(?:full )?name\b", text):
            return DeskAct(ASK, ASK_NAME)
        if _CODE.search(text):
            return DeskAct(ASK, ASK_CODE)
        if self._which.search(text):
            return DeskAct(ASK, ASK_WHICH)
        return DeskAct(BYE) if _BYES.search(text) else DeskAct()

    def _telling(self, text: str) -> DeskAct:
        number = self._number(text)
        values = re.findall(r"\d+", self._record.sub(" ", text))
        for which, pattern in enumerate(self._tells):
            if pattern.search(text) and number != NONE and values:
                value = self._place(self.domain.tells[which], values[-1])
                return DeskAct(TELL, which, number, value)
        return DeskAct()

    def _user(self, text: str, last: DeskAct) -> DeskAct:
        """The first reading that fits."""
        if _PARDONS.search(text):
            return DeskAct(PARDON)
        number, name = self._number(text), self._value(self.domain.fields[NAME], text)
        if number != NONE:
            name = NONE
        return (
            (self._of_device(text, last) if self.domain.device else None)
            or self._change_of_mind(text, last, number == name)
            or (self._claim(text) if _CLAIMS.search(text) else None)
            or self._wish(text, last, number, name)
            or self._answer(text, last, number, name)
            or NOTHING
        )

    def _of_device(self, text: str, last: DeskAct) -> DeskAct | None:
        """A use of the device, what was done with it, or what it shows."""
        if _USES.search(text):
            for tool, pattern in _DEVICE:
                if pattern.search(text):
                    return DeskAct(USE, tool)
        airplane, data = _AIRPLANE.findall(text), _DATA.findall(text)
        if _WORKS.search(text):
            return DeskAct(SCREEN, value=screen_of(WORKS))
        if _DID.search(text) and not (airplane and data):
            return DeskAct(DID)
        read = last[:2] == (PLEASE, READ_SCREEN) and _NO_SIGNAL.search(text)
        if not (airplane or data or read):
            return None
        signal = bool(_SIGNAL.search(text)) and not _NO_SIGNAL.search(text)
        bits = airplane[-1:] == ["on"], data[-1:] != ["off"], signal  # usual where nothing is said
        return DeskAct(SCREEN, value=sum(bit << place for place, bit in enumerate(bits)))

    def _change_of_mind(self, text: str, last: DeskAct, unnamed: bool) -> DeskAct | None:
        """Another argument, or nothing any more."""
        argument = self._argument(text)
        if argument and unnamed:
            changes = _RATHER.search(text) or _LEAVES.search(text)
            answers = last.op == CONFIRM or last[:2] == (ASK, ASK_WHICH)
            if changes or answers or self._is_alone(argument, text):
                return argument
        if _LEAVES.search(text) or self._undone.search(text):
            return DeskAct(LEAVE)
        return None

    def _argument(self, text: str) -> DeskAct | None:
        """The last value in a text that a change may have as its argument."""
        for at in self._takes:
            value = self._value(self.domain.fields[at], text)
            if value != NONE:
                return DeskAct(CHANGE, at, value=value)
        return None

    def _is_alone(self, argument: DeskAct, text: str) -> bool:
        values = self._values[self.domain.fields[argument.which].name]
        return not _LONE.sub("", values.sub("", text))

    def _claim(self, text: str) -> DeskAct | None:
        fields = self.domain.fields
        spoken = re.findall(r"\w+", text)
        named = [at for at in range(NAME + 1, len(fields)) if fields[at].name in spoken]
        for at in (*named, self.domain.status):
            value = self._value(fields[at], text)
            if value != NONE:
                return DeskAct(CLAIM, at, value=value)
        return None

    def _wish(self, text: str, last: DeskAct, number: int, name: int) -> DeskAct | None:
        """A wish; not one that is only repeated with a yes."""
        write, value = self._change(text)
        asked = next((at for at, words in enumerate(self._tells) if words.search(text)), NONE)
        if _YES.search(text) and last.op == CONFIRM:
            return None
        if asked != NONE and _ASKING.search(text):
            return DeskAct(WANT, len(self.domain.writes) + asked, number, NONE, name)
        argument = self._argument(text)
        if (write != NONE or argument) and name == NONE:
            number = self._number(text, bare=True)
        if write == NONE and argument and number != name and last[:2] != (ASK, ASK_WHICH):
            write, value = self._takes[argument.which], argument.value
        if write != NONE:
            return DeskAct(WANT, write, number, value, name)
        if asked != NONE and number != name:
            return DeskAct(WANT, len(self.domain.writes) + asked, number, NONE, name)
        if person := _NAME.search(text):
            return DeskAct(NAMED, value=NAMES.index(person[0]))
        if self.domain.device and _INTERNET.search(text):
            return DeskAct(WANT, self.domain.internet)
        return None

    def _answer(self, text: str, last: DeskAct, number: int, name: int) -> DeskAct | None:
        """An answer to a question of the desk, or small talk."""
        if _DID.search(text):
            return DeskAct(DID)
        if _BYES.search(text):
            return DeskAct(FAREWELL)
        if _YES.search(text):
            return DeskAct(YES)
        if number != name:
            return DeskAct(WHICH, number=number, name=name)
        if _NO.search(text):
            return DeskAct(NO)
        if digits := re.findall(r"\b\d\d\b", text):
            place = NUMBERS.index(digits[-1])
            asked = last[:2] == (ASK, ASK_WHICH) and not _CODE.search(text)
            return DeskAct(WHICH, number=place) if asked else DeskAct(CODE, value=place)
        return DeskAct(TALK) if _TALK.search(text) else None


def _same(text: str) -> str:
    return _SAME_WAYS.sub(lambda found: _SAME[found[0]], text)


def _pattern(field: Field) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, field.values))})\b")
