"""Names of code in settings, and the callers' permission to import them.

Settings may name a class as ``module:Class``, which is then imported and called. Where settings
were read from a file (a data set, YAML), a name must be allowed: a caller has given it in this
process, in Python or on the command line, or it is one of `OURS`. The check fails closed: it looks
at every text that begins as such a name, whatever it is for.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

OURS = {"agents:ActAgent", "agents:ChatAgent", "agents:load_speaker"}
"""Speakers that stored dialogues may name; what they load, they load without trust."""
SCHEMES = {"bpe", "exact", "hf", "learned", "remote", "scenes", "visdial", "words", "zoo"}
"""Prefixes before a colon that are no modules: ``hf:NAME``, ``visdial:PATH``."""
_CODE = re.compile(r"([\w.-]+):")
_NO_CODE = re.compile(r"\d\d?:\d\d|[A-Za-z]:[/\\].*")
"""A time of day, a path of Windows."""
_allowed: set[str] = set()


def is_code(text: str) -> bool:
    """Return True if a text could be taken for ``module:Class``, existing or not."""
    match = _CODE.match(text)
    return bool(match and match[1] not in SCHEMES and not _NO_CODE.fullmatch(text))


def allow(value: Any) -> None:
    """Allow files to name the code that a caller's value names."""
    _allowed.update(_named(value))


def is_allowed(name: str) -> bool:
    """Return True if files may name this code."""
    return name in _allowed or name in OURS


def check_names(value: Any, where: str, trust: bool = False) -> None:
    """Refuse settings of a file that name code which no caller has allowed.

    Args:
        value: plain values, as of JSON or YAML.
        where: what they were read from, for messages.
        trust: the caller trusts the file: its names are allowed.

    Raises:
        ValueError: they name code or a server that is not allowed, or ask to be trusted.
    """
    if trust:
        allow(value)
        return
    for name in _named(value):
        if not is_allowed(name):
            raise distrusted(name, where)


def distrusted(name: str, where: str) -> ValueError:
    """Build the error for a name in a file that is not allowed."""
    return ValueError(
        f"{where}: it names {name!r}, which could run code of whoever made it. If you trust them, "
        "name it yourself (as in env_kwargs=), or say trust=True (--trust on the command line)."
    )


def _named(value: Any) -> Iterator[str]:
    """Yield texts that name code or a server, and settings that would trust a file."""
    if isinstance(value, str):
        if is_code(value) or "://" in value:
            yield value
    elif isinstance(value, Mapping):
        if value.get("trust"):
            yield "trust"
        if "lm" in (value.get("simulator"), value.get("name")):
            yield "lm"
        if "lm_judge" in value or value.get("reward") == "lm_judge":
            yield "lm_judge"
        if isinstance(value.get("lm"), Mapping):
            yield f"openai:{value['lm'].get('model', '')}"
        for key, part in value.items():
            yield from _named(key)
            yield from _named(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _named(part)
