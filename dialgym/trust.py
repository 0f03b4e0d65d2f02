"""Names of code, and who may say them: callers, in Python and on the command line; no file.

Settings may name a class as ``module:Class``, which is then imported and called. Where settings
were read from a file (a data set, YAML), a name must be known: one that a caller has said in this
process, or one of `OURS`. The check fails closed: it looks at every text that begins as such a
name, whatever it is for.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

OURS = {"agents:ActAgent", "agents:ChatAgent"}
"""Speakers that stored dialogues may name; what they load, they load without trust."""
SCHEMES = {"bpe", "exact", "hf", "learned", "remote", "scenes", "visdial", "words"}
"""What may stand before a colon and is no module: ``hf:NAME``, ``visdial:PATH``."""
_CODE = re.compile(r"([\w.-]+):")
_NO_CODE = re.compile(r"\d\d?:\d\d|[A-Za-z]:[/\\].*")
"""A time of day, a path of Windows."""
_said: set[str] = set()


def is_code(text: str) -> bool:
    """Whether a text could be taken for ``module:Class``, be there such a class or not."""
    found = _CODE.match(text)
    return bool(found and found[1] not in SCHEMES and not _NO_CODE.fullmatch(text))


def say(value: Any) -> None:
    """Take down the names in what a caller gave: from here on files may have them too."""
    _said.update(_named(value))


def is_said(name: str) -> bool:
    """Whether a caller has said a name."""
    return name in _said or name in OURS


def check_names(value: Any, where: str, trust: bool = False) -> None:
    """Look at settings that were read from a file.

    Args:
        value: plain values, as of JSON or YAML.
        where: what they were read from, for messages.
        trust: the caller trusts the file: its names count as said.

    Raises:
        ValueError: they name code or a server that no caller has named, or ask to be trusted.
    """
    if trust:
        say(value)
        return
    for name in _named(value):
        if not is_said(name):
            raise distrusted(name, where)


def distrusted(name: str, where: str) -> ValueError:
    """The error for a name in a file that nobody has said."""
    return ValueError(
        f"{where}: it names {name!r}, which could run code of whoever made it. If you trust them, "
        "name it yourself (as in env_kwargs=), or say trust=True (--trust on the command line)."
    )


def _named(value: Any) -> Iterator[str]:
    """Texts that name code or a server, and settings that would trust a file."""
    if isinstance(value, str):
        if is_code(value) or "://" in value:
            yield value
    elif isinstance(value, Mapping):
        if value.get("trust"):
            yield "trust"
        for key, part in value.items():
            yield from _named(key)
            yield from _named(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _named(part)
