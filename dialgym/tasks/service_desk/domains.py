"""The two domains: fields of a record, tools that change it, rules of the desk, and their words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from dialgym.language.text import article

NONE = -1
"""Stands for a value, a record or a request that is not there."""
NUMBERS = tuple(map(str, range(10, 100)))
"""Values of numbers of records, and of codes of customers."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    "anna bruno carla david elena felix greta henry irene jonas karin louis maria nils olga paul"
)
LAST_NAMES = _words(
    "adler berg conti duval evans falk grant holm ivers jansen keller lopez moser novak otto pratt"
)
NAMES = tuple(f"{first} {last}" for first, last in product(FIRST_NAMES, LAST_NAMES))
DEVICE_TOOLS = ("read_screen", "restart", "toggle_airplane", "toggle_data")
READ_SCREEN, RESTART, AIRPLANE, DATA = range(4)
"""Tools of a device in the user's hands."""
NUMBER, NAME = 0, 1
"""Fields that every record has first: its number, and what it is."""

Record = list[int]
"""The value of each field, as its place among `Field.values`."""


class Field(NamedTuple):
    """A field of records, and its values; those of numbers ascend.

    Attributes:
        name: of the field.
        values: in words.
        noun: the field in English; "" for its name.
        clauses: English for a record that has ``{value}``: one for all, or one for each value.
        asked: pattern of the words by which English asks for it.
    """

    name: str
    values: tuple[str, ...]
    noun: str = ""
    clauses: tuple[str, ...] = ()
    asked: str = ""

    @property
    def english(self) -> str:
        """The field in English."""
        return self.noun or self.name

    def clause(self, value: int, bound: str = "") -> str:
        """English for a record that has a value, or is within a bound: ``its price is 40``."""
        clauses = self.clauses or (f"its {self.name} is {{value}}",)
        return clauses[value % len(clauses)].format(value=bound + self.values[value])


class Rule(NamedTuple):
    """A condition of a change: the value of a field ``is`` one, or is ``at most`` one."""

    field: int
    test: str
    value: int

    def holds(self, record: Sequence[int]) -> bool:
        value = record[self.field]
        return value == self.value if self.test == "is" else value <= self.value


class Write(NamedTuple):
    """A tool that changes a record.

    Attributes:
        tool: its name.
        phrase: what it does to ``{it}``, in English.
        exact: the same, with the argument as ``{value}``.
        verbs: pattern of the words by which English names it.
        field: the field that it changes.
        value: the new value; NONE for the tool's argument.
        needs: values of the record's status with which it is possible at all: what the database
            lets anybody do, whatever the rules of the desk.
    """

    tool: str
    phrase: str
    exact: str
    verbs: str
    field: int
    value: int
    needs: tuple[int, ...]


Policy = tuple[tuple[Rule, ...], ...]
"""The rules of each write."""


@dataclass(frozen=True)
class DeskDomain:
    """Fields, tools and rules that a desk is about.

    Attributes:
        name: of the domain.
        noun: a record, such as ``order``.
        called: a record in English, by what it is.
        fields: of a record.
        status: the field on which the needs of writes depend.
        writes: tools that change a record.
        tells: fields that customers ask for.
        device: whether customers hold a device.
        policies, unseen: rules that a dialogue may have, and those of the split ``unseen``.
    """

    name: str
    noun: str
    called: str
    fields: tuple[Field, ...]
    status: int
    writes: tuple[Write, ...]
    tells: tuple[int, ...]
    device: bool
    policies: tuple[Policy, ...]
    unseen: tuple[Policy, ...]

    @cached_property
    def every(self) -> tuple[Policy, ...]:
        """All policies, those of `unseen` last."""
        return self.policies + self.unseen

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Wishes by name: writes, then fields, then that a device works."""
        asked = (self.fields[field].name for field in self.tells)
        return (*(w.tool for w in self.writes), *asked, *(("internet",) if self.device else ()))

    @cached_property
    def internet(self) -> int:
        """The wish that a device works."""
        return len(self.writes) + len(self.tells)

    def argument(self, kind: int) -> Field | None:
        """The field whose value a wish for a write gives; None for other wishes, NONE too."""
        if not 0 <= kind < len(self.writes):
            return None
        chosen = self.writes[kind]
        return self.fields[chosen.field] if chosen.value == NONE else None

    def possible(self, write: int, record: Sequence[int]) -> bool:
        """Tell if the database lets a record be changed so."""
        return record[self.status] in self.writes[write].needs

    def allows(self, policy: int, write: int, record: Sequence[int]) -> bool:
        """Tell if that is possible, and no rule of the policy forbids it."""
        if not self.possible(write, record):
            return False
        return all(rule.holds(record) for rule in self.every[policy][write])

    def allowed(self, policy: int, record: Sequence[int]) -> list[str]:
        """The tools of the writes that are allowed."""
        return [w.tool for at, w in enumerate(self.writes) if self.allows(policy, at, record)]

    def policy_lines(self, policy: int, english: bool) -> list[str]:
        """The rules of each write, a line each, from the very objects that the grader asks."""
        return [
            " ".join(self._line(write, rules, english))
            for write, rules in zip(self.writes, self.every[policy])
        ]

    def _line(self, write: Write, rules: Sequence[Rule], english: bool) -> Iterator[str]:
        if english:
            action = write.phrase.format(it=f"{article(self.noun)} {self.noun}")
            yield f"You may {action} only if"
        else:
            yield f"policy {write.tool}"
        for place, rule in enumerate(rules):
            field = self.fields[rule.field]
            if place:
                yield "and"
            if english:
                bound = "" if rule.test == "is" else f"{rule.test} "
                yield field.clause(rule.value, bound) + "." * (place == len(rules) - 1)
            else:
                yield f"{field.name} {rule.test} {field.values[rule.value]}"


def _policies(*choices: Sequence[tuple[Rule, ...]]) -> tuple[Policy, ...]:
    """One policy for each way to choose the rules of each write."""
    return tuple(product(*choices))


_CANCEL = r"cancel|call off|not want (?:the|my)\b.* any ?more|get rid of"
_COLOURS = _words("black blue green grey red white")
_PRODUCTS = _words("bag book chair clock cup desk jacket lamp pillow radio shirt vase")
_STREETS = _words("cedar elm forest harbour hill lake market mill park river station tower")
_DAYS = tuple(map(str, range(1, 61)))
_MONEY = tuple(map(str, range(10, 100, 5)))
_PROCESSING, _SHIPPED, _DELIVERED, _CANCELLED, _RETURNED = range(5)
_SHOP_FIELDS = (
    Field("order", NUMBERS),
    Field("product", _PRODUCTS),
    Field("colour", _COLOURS),
    Field("status", ("processing", "shipped", "delivered", "cancelled", "returned")),
    Field(
        "days",
        _DAYS,
        "age in days",
        ("it is {value} days old",),
        r"\b(?:days|how (?:old|long ago|many days)|age|when (?:did|was))\b",
    ),
    Field("price", _MONEY, asked=r"\b(?:price|cost|how much|paid|pay|expensive)\b"),
    Field("sale", ("no", "yes"), clauses=("it was not on sale", "it was on sale")),
    Field("street", _STREETS),
)
_ON_THE_WAY = _PROCESSING, _SHIPPED
_NO_SALE, _IN_PROCESS = Rule(6, "is", 0), Rule(3, "is", _PROCESSING)


def _days(most: int) -> Rule:
    return Rule(4, "at most", _DAYS.index(str(most)))


def _shop(
    returns: Sequence[int], exchanges: Sequence[int], prices: Sequence[int]
) -> tuple[Policy, ...]:
    cheap = [Rule(5, "at most", _MONEY.index(str(price))) for price in prices]
    return _policies(
        [(_IN_PROCESS,), *((_IN_PROCESS, rule) for rule in cheap)],
        [rules for most in returns for rules in ((_days(most),), (_days(most), _NO_SALE))],
        [rules for most in exchanges for rules in ((_days(most),), (_days(most), _NO_SALE))],
        [(_IN_PROCESS,)],
    )


SHOP = DeskDomain(
    "shop",
    "order",
    "the {name}",
    _SHOP_FIELDS,
    3,
    (
        Write("cancel_order", "cancel {it}", "cancel {it}", _CANCEL, 3, _CANCELLED, _ON_THE_WAY),
        Write(
            "return_order",
            "take back {it}",
            "take back {it}",
            r"return|(?:take|give|send|bring)\b.* back\b|refund|money back",
            3,
            _RETURNED,
            (_DELIVERED,),
        ),
        Write(
            "exchange_order",
            "exchange {it} for another colour",
            "exchange {it} for a {value} one",
            r"exchange|swap|(?:another|other|different) colour|colour .*\b(?:to|for|into)\b",
            2,
            NONE,
            (_DELIVERED,),
        ),
        Write(
            "change_address",
            "send {it} to another street",
            "send {it} to {value} street",
            r"address|street|send|ship(?!ped)|deliver(?!ed)|moved|redirect",
            7,
            NONE,
            _ON_THE_WAY,
        ),
    ),
    (5, 4),
    False,
    _shop((14, 30), (14, 30), (50,)),
    _shop((21, 45), (21, 45), (70,)),
)
_ACTIVE, _SUSPENDED, _ENDED = range(3)
_OWNERS = _words("alarm camera car heating mother office phone printer router son tablet watch")
_MONTHS = tuple(map(str, range(25)))
_LATE = tuple(map(str, range(61)))
_PHONE_FIELDS = (
    Field("line", NUMBERS),
    Field("use", _OWNERS),
    Field("plan", ("basic", "plus", "max", "family")),
    Field("status", ("active", "suspended", "cancelled")),
    Field("overdue", _LATE, clauses=("its bill is {value} days overdue",)),
    Field("bill", _MONEY, asked=r"\b(?:bill|how much|owe|pay|balance|debt)\b"),
    Field("roaming", ("off", "on")),
    Field(
        "months",
        _MONTHS,
        "remaining time in months",
        ("its contract has {value} months left",),
        r"\b(?:months|contract|how long|run out|runs out)\b",
    ),
)


def _phone(months: Sequence[int], late: Sequence[int], debts: Sequence[int]) -> tuple[Policy, ...]:
    bound = [Rule(7, "at most", most) for most in months]
    overdue = [Rule(4, "at most", most) for most in late]
    cheap = [Rule(5, "at most", _MONEY.index(str(most))) for most in debts]
    return _policies(
        [(rule,) for rule in bound],
        [rules for rule in bound for rules in ((rule,), (rule, overdue[0]))],
        [(rule,) for rule in overdue],
        [(rule,) for rule in overdue + cheap],
    )


PHONE = DeskDomain(
    "phone",
    "line",
    "the line of the {name}",
    _PHONE_FIELDS,
    3,
    (
        Write(
            "cancel_line", "cancel {it}", "cancel {it}", _CANCEL, 3, _ENDED, (_ACTIVE, _SUSPENDED)
        ),
        Write(
            "change_plan",
            "put {it} on another plan",
            "put {it} on the {value} plan",
            r"plan\b|tariff|upgrade|downgrade",
            2,
            NONE,
            (_ACTIVE,),
        ),
        Write(
            "resume_line",
            "resume {it}",
            "resume {it}",
            r"resume|re-?activate|unblock|unlock|un-?suspend|restore",
            3,
            _ACTIVE,
            (_SUSPENDED,),
        ),
        Write(
            "roaming_on",
            "turn roaming on for {it}",
            "turn roaming on for {it}",
            r"roam|abroad|foreign",
            6,
            1,
            (_ACTIVE,),
        ),
    ),
    (5, 7),
    True,
    _phone((6, 12), (10, 20), (50,)),
    _phone((3, 9), (5, 30), (70,)),
)
DOMAINS = {"shop": SHOP, "phone": PHONE}
