"""Reading of prices in English: in dollars, in percent, and by what was offered before."""

import re
from typing import NamedTuple

from dialgym.language.spelled_numbers import in_digits
from dialgym.tasks.bargain.wording import clauses

PERCENT, DOLLARS, MIDDLE = "percent", "dollars", "middle"
_AMOUNT = re.compile(
    r"(?P<dollar>\$ ?)?(?<![\d.,/'\"-])(?P<number>\d+(?:\.\d+)?)(?!\.?\d)"
    r"(?: ?(?P<thousand>k|grand)\b| ?(?P<percent>%|percent\b|per cent\b|pct\b))?"
    r"(?P<bucks> ?(?:\$|dollars?\b|bucks?\b|usd\b))?"
    r"(?! ?(?:square|sq|sqft|feet|foot|ft|inch(?:es)?|cm|miles?|years?|yrs?|months?|weeks?|days?"
    r"|hours?|hrs?|minutes?|bed(?:room)?s?|bath(?:room)?s?|br|gb|tb|mb|watts?|lbs?|pounds|mpg"
    r"|times|people|persons|am|pm|st|nd|rd|th|s|hdmi|seats?|seater|doors?|cars?|others?)\b"
    r"|[\"']|[/-]\d|-(?:inch|year|month|bed|speed|door|pack))"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_PAIR = re.compile(r"(?<![\d.$-])\b([1-9]) ([1-9][05])\b(?! ?(?:%|percent|\d))")  # two fifty
_FULL = re.compile(r"\b(?:full|asking|list|listing|listed|original|sticker) price\b")
_HALF = re.compile(r"\bhalf (?:of )?(?:the |your |that |list |asking )*(?:price|that|it)\b")
_HALF_OFF = re.compile(r"\bhalf(?: price)? off\b")
_MIDDLE = re.compile(
    r"\b(?:meet (?:\w+ )?(?:in the middle|half ?way)|in the middle|half ?way|split the difference"
    r"|split it|between (?:our|your|the two|both|these|those))\b"
)
_LESS_AFTER = re.compile(
    r" ?(?:off\b|less\b|lower\b|cheaper\b|down\b|discount|reduction|below\b|under\b|rebate)"
)
_LESS_BEFORE = re.compile(
    r"\b(?:discount of|down by|by|off|down|knock|minus|less)(?: another| an?)? (?:\$ ?)?$"
)
_MORE_AFTER = re.compile(r" ?(?:more\b|extra\b|higher\b|on top\b|above\b|over\b)")
_MORE_BEFORE = re.compile(
    r"\b(?:another|an? extra|an? additional|extra|additional|add|plus|up by) (?:\$ ?)?$"
)
_RAISES = re.compile(r"\b(?:up|raise|increase|more|add|higher)\b")
_OF_OFFER = re.compile(r"\b(?:your|my|that|last|this) (?:last |latest )?(?:offer|price|bid)\b")
_OF_LIST = re.compile(r"\b(?:list|listing|asking|original|sticker)\b")
_NO = re.compile(r"n'?t\b|\b(?:cannot|not|never|no)\b")
_NOT = r"(?:can'?t|cannot|won'?t|couldn'?t|wouldn'?t|don'?t|doesn'?t|isn'?t|not|never|no way)"
_REFUSED_BEFORE = re.compile(
    rf"\b{_NOT}\b(?! you\b)(?: (?!(?:than|below|under|over|above|beyond|past|as|up|to|mind|but"
    r"|so|if|how|i'd|i'll|let's|about)\b)[\w']+){0,5} ?(?:\$ ?)?$"
)
_REJECTED_BEFORE = re.compile(
    r"\b(?:reject|decline|refuse(?: to)?|no to)(?: (?!(?:than|below|under|over|above|beyond|past|to"
    r"|and|so|if|how|about|i|we|i'd|i'll|let's|my|say|propose|counter|instead)\b)[a-z']+){0,5} ?"
    r"(?:\$ ?)?$"
)
_REFUSED_AFTER = re.compile(
    rf" ?(?:is|was|'s|would be|seems|sounds|will|does|would|for it)?(?: (?:just|still|really|far"
    rf"|way|a|an|kind of|so|little|bit|tad))* (?:{_NOT}\b|too \w+|low\b|high\b|steep\b"
    r"|(?:rejected|declined|refused)\b)"
)
_MENTIONED_BEFORE = re.compile(
    r"\b(?:retails?|originally|paid|cost me|bought|goes|going|went|value|worth|book|ebay"
    r"|amazon|deposit|model|fee)(?: (?:it|them|this|was|is|for|of|at|about|around|over|only|me|up"
    r"|to|a|the))* ?(?:\$ ?)?$"
)
_MENTIONED_AFTER = re.compile(r" ?(?:deposit|new\b|retail|brand)")


class LastPrices(NamedTuple):
    """Last prices of both parties in dollars; None where there is none."""

    seller: float | None = None
    buyer: float | None = None


class Amount(NamedTuple):
    """A price as it was said.

    Attributes:
        value: in the unit.
        unit: `DOLLARS`; `PERCENT`; or `MIDDLE`, between the last offers of both.
        change: -1 for so much less than another price, 1 for more, 0 for the price itself.
        of_offer: whether that other price is the last offer, and not the list price.
        sure: whether it can be nothing else than a price.
    """

    value: float
    unit: str
    change: int = 0
    of_offer: bool = False
    sure: bool = True

    def dollars(self, listed: float, offers: LastPrices) -> float | None:
        """The price in dollars, None where the offers that it refers to are missing.

        So much less is less than the seller's last offer, if there is one; so much more is more
        than the buyer's. Percents ``off`` are of the list price.
        """
        if self.unit == MIDDLE:
            if offers.seller is None or offers.buyer is None:
                return None
            return (offers.seller + offers.buyer) / 2
        base: float | None = listed
        if self.change and self.of_offer:
            known = offers.seller if self.change < 0 else offers.buyer
            base = listed if known is None and self.change < 0 else known
        if base is None:
            return None
        value = base * self.value / 100 if self.unit == PERCENT else self.value
        return base + self.change * value if self.change else value


def amounts(text: str) -> list[Amount]:
    """The prices that a text in lower case proposes, in its order; none that it refuses."""
    spelled = _PAIR.sub(r"\1\2", in_digits(_THOUSANDS.sub("", text)))
    return [amount for part in clauses(spelled) for amount in _amounts(part)]


def _amounts(clause: str) -> list[Amount]:
    said = list(_AMOUNT.finditer(clause))
    if said:
        return [_amount(clause, one) for one in said if _is_proposed(clause, one)]
    if _NO.search(clause):
        return []
    if _HALF_OFF.search(clause) or _HALF.search(clause):
        return [Amount(50, PERCENT)]
    if _MIDDLE.search(clause):
        return [Amount(0, MIDDLE)]
    return [Amount(100, PERCENT)] if _FULL.search(clause) else []


def _is_proposed(clause: str, one: re.Match[str]) -> bool:
    """Tell if a number is a price that is neither refused nor only spoken about."""
    before, after = clause[: one.start()], clause[one.end() :]
    refused = any(pattern.search(before) for pattern in (_REFUSED_BEFORE, _REJECTED_BEFORE))
    mentioned = _MENTIONED_BEFORE.search(before) or _MENTIONED_AFTER.match(after)
    return not (refused or _REFUSED_AFTER.match(after) or mentioned)


def _amount(clause: str, one: re.Match[str]) -> Amount:
    before, after = clause[: one.start()], clause[one.end() :]
    unit = PERCENT if one["percent"] else DOLLARS
    of_offer = unit == DOLLARS or "off" not in clause or bool(_OF_OFFER.search(clause))
    return Amount(
        float(one["number"]) * (1000 if one["thousand"] else 1),
        unit,
        _change(before, after),
        of_offer and not _OF_LIST.search(after),
        any(one[mark] for mark in ("dollar", "thousand", "percent", "bucks")),
    )


def _change(before: str, after: str) -> int:
    """-1 where a number is so much less, by the words on both sides; 1 more; 0 a price itself."""
    if _LESS_AFTER.match(after):
        return -1
    if _MORE_AFTER.match(after):
        return 1
    if _LESS_BEFORE.search(before):
        return 1 if _RAISES.search(before) else -1
    return int(bool(_MORE_BEFORE.search(before)))
