"""Numbers that are spelled in English words, from zero to the hundreds of thousands."""

import re

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
_UNITS += " fifteen sixteen seventeen eighteen nineteen"
UNITS = {word: number for number, word in enumerate(_UNITS.split())}
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
TENS = {word: 10 * number for number, word in enumerate(_TENS, 2)}
SCALES = {"hundred": 100, "thousand": 1000}
_ANY = "|".join(sorted((*UNITS, *TENS), key=len, reverse=True))
_BELOW = rf"(?:(?:{'|'.join(TENS)})(?:[ -](?:{'|'.join(_UNITS.split()[1:10])}))?|(?:{_ANY}))"
_NUMBER = re.compile(
    rf"\b(?:(?:(?:a|\d+(?:\.\d+)?|{_BELOW})[ -](?:hundred|thousand)|hundred|thousand)"
    rf"(?:[ -](?:(?:and )?{_BELOW}(?:[ -](?:hundred|thousand))?|hundred|thousand))*"
    rf"|{_BELOW})\b"
)
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?")


def in_digits(text: str) -> str:
    """A text in lower case with its numbers in digits: ``a hundred and fifty`` is ``150``."""
    return _NUMBER.sub(lambda found: f"{_value(found[0]):.10g}", text)


def _value(words: str) -> float:
    """The number that words say."""
    whole = below = 0.0
    for word in _WORD.findall(words):
        if word == "thousand":
            whole, below = whole + 1000 * (below or 1), 0
        elif word == "hundred":
            below = 100 * (below or 1)
        elif word not in ("a", "and"):
            below += UNITS.get(word, TENS.get(word, 0)) or float(word if word[0].isdigit() else 0)
    return whole + below
