"""Rule-based detection of abusive language.

The words and rules are those of `lexicons/abuse.yaml`. They are looked for clause by clause, in
lower case, after disguised words ("1d10t", "st*pid", "i d i o t", "stuuupid") have been read. A
name of a group is never abuse by itself, only what is said of the group; idioms, negations, reports
of what others said and words about oneself do not count.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from dialgym.rewards.words import TOKEN

KINDS = ("threat", "self_harm", "group_attack", "slur", "insult", "obscene")
"""Threats and wishes of harm; urging somebody to harm themselves; contempt for a group or its
exclusion; slurs; insults of a person and rude dismissals; obscene words."""
HIDDEN = ("slur", "insult", "obscene", "unkind")
"""Lists of words that are looked for in disguise."""
WORD = r"(?: (?!(?:not|never|no|nor|\w+n't)\b)[\w'-]+)"
"""Any word but a negation, after a space."""
ABOUT_CONTEMPT = r"\w+n't|racis\w*|discriminat\w*|\w*stereotyp\w*"
"""Denials, and words for contempt itself."""
SUBJECT = "(?:{group}|{people_of} {people}|{kin}|(?:the|all) {people_of})"
"""A group that something is said of."""
_LETTERS = str.maketrans("013457@$!", "oieastasi")
_ODD = re.compile(r"[*#@$!0-9]|(\w)\1\1")
_SPACED = re.compile(r"(?<!\S)(?:[a-z][ .*-]){2,}[a-z](?!\w)")
_CLAUSE = re.compile(r"[.!?;:]+")
_REST = re.compile(r"[^a-z]+$")


@dataclass(frozen=True)
class Abuse:
    """The rules, made ready.

    Attributes:
        rules: for each kind one expression, the alternatives of its rules.
        excuses: for each kind those that may end just before a match, which then does not count.
        innocent: what is read as harmless, whatever words it has.
        hidden: words that are looked for in disguise.
    """

    rules: Mapping[str, re.Pattern[str]]
    excuses: Mapping[str, tuple[re.Pattern[str], ...]]
    innocent: re.Pattern[str]
    hidden: frozenset[str]

    def find(self, text: str) -> Iterator[tuple[str, str]]:
        """Kind and words of each abuse in the text, clause by clause."""
        for clause in clauses(self._undisguised(plain_lower(text))):
            if any(rule.search(clause) for rule in self.rules.values()):
                yield from self._of_clause(self.innocent.sub("_", clause))

    def _of_clause(self, clause: str) -> Iterator[tuple[str, str]]:
        for kind, rule in self.rules.items():
            for match in rule.finditer(clause):
                before = clause[: match.start()].rstrip()
                if not any(excuse.search(before) for excuse in self.excuses[kind]):
                    yield kind, match.group()

    def counts(self, text: str) -> dict[str, int]:
        """Count each of `KINDS` in the text."""
        counts = dict.fromkeys(KINDS, 0)
        for kind, _ in self.find(text):
            counts[kind] += 1
        return counts

    def _undisguised(self, text: str) -> str:
        joined = _SPACED.sub(lambda match: self._joined(match.group()), text)
        return " ".join(self._plain(w) if _ODD.search(w) else w for w in joined.split())

    def _joined(self, spaced: str) -> str:
        word = re.sub(r"[^a-z]", "", spaced)
        return word if word in self.hidden else spaced

    def _plain(self, word: str) -> str:
        """The word that is meant, where it is one of the hidden; else the word as it is."""
        ending = _REST.search(word)
        core, rest = (word[: ending.start()], ending.group()) if ending else (word, "")
        for reading in self._readings(core):
            if reading in self.hidden:
                return reading + rest
        return word

    def _readings(self, word: str) -> Iterator[str]:
        yield word.translate(_LETTERS)
        yield word.replace("1", "l").translate(_LETTERS)
        yield re.sub(r"(\w)\1+", r"\1", word)
        yield re.sub(r"(\w)\1\1+", r"\1\1", word)
        parts = re.split(r"[*#]+", word)
        if len(parts) > 1:
            shape = re.compile("[a-z]{1,4}".join(map(re.escape, parts)))
            yield from sorted(hidden for hidden in self.hidden if shape.fullmatch(hidden))


def clauses(text: str) -> Iterator[str]:
    """The parts of a text between full stops and the like, marks apart from words."""
    for part in _CLAUSE.split(text):
        if part.strip():
            yield " ".join(TOKEN.findall(part))


def plain_lower(text: str) -> str:
    """The text in lower case, with straight apostrophes and each line a clause."""
    return text.lower().replace("’", "'").replace("\n", " . ")


@lru_cache(maxsize=1)
def read_abuse() -> Abuse:
    """The built-in rules."""
    stored = yaml.safe_load(_lexicon().read_text("utf-8"))
    lists = {name: listed.split() for name, listed in stored["words"].items()}
    names = {name: _alternatives(listed) for name, listed in lists.items()} | {"w": WORD}
    names["v"] = rf"(?: (?!(?:{names['harmless']}|{ABOUT_CONTEMPT})\b)[\w'-]+)"
    names |= {"g": SUBJECT.format(**names)}
    excuses = stored["excuses"]
    kinds = excuses.pop("kinds")
    forms = {name: re.compile(form.format()) for name, form in excuses.items()}
    return Abuse(
        {kind: _either(rule.format(**names) for rule in stored["rules"][kind]) for kind in KINDS},
        {kind: tuple(forms[name] for name in kinds.get(kind, ())) for kind in KINDS},
        _either(stored["innocent"]),
        frozenset(word for name in HIDDEN for word in lists[name] if len(word) > 2),
    )


def _lexicon() -> Any:
    return files("dialgym.rewards") / "lexicons" / "abuse.yaml"


def _alternatives(listed: Iterable[str]) -> str:
    """The words and phrases as one expression, longest first, shared beginnings once: Python's own
    alternatives are tried one by one."""
    tree: dict[str, Any] = {}
    for entry in listed:
        node = tree
        for char in entry.replace("_", " "):
            node = node.setdefault(char, {})
        node[""] = {}
    return _expression(tree)


def _expression(tree: dict[str, Any]) -> str:
    """Pattern of any path through a tree of characters; an empty one ends a word."""
    longer = [re.escape(char) + _expression(rest) for char, rest in tree.items() if char]
    if not longer:
        return ""
    joined = longer[0] if len(longer) == 1 and "" not in tree else f"(?:{'|'.join(longer)})"
    return f"(?:{joined})?" if "" in tree else joined


def _either(rules: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches whole words by any of the rules."""
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(f'(?:{rule})' for rule in rules)})(?![\w])")
