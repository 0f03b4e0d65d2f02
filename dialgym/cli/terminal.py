"""Terminal of the program: encoding of texts and file names, and width."""

import codecs
import os
import re
import sys
from typing import Any

SHOWN = "dialgym.shown"
UTF8_MODE = "PYTHONUTF8"


def prepare_terminal() -> None:
    """Read and write texts as UTF-8, ignore a width of nothing, read nothing from a closed input.

    Where the locale knows ASCII alone, the program begins again in Python's UTF-8 mode, so that
    arguments and names of files with accents are what they are in the processes that it starts,
    too. What is no text is shown as its bytes.
    """
    if sys.getfilesystemencoding() == "ascii" and os.environ.get(UTF8_MODE) != "1":
        os.environ[UTF8_MODE] = "1"
        os.execv(sys.executable, sys.orig_argv)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (until the program ends)
    codecs.register_error(SHOWN, _shown)
    _reconfigure(sys.stdout, SHOWN)
    _reconfigure(sys.stderr, SHOWN)
    for name in ("COLUMNS", "LINES"):  # of which rich would print nothing
        if os.environ.get(name) == "0":
            del os.environ[name]


def visible(text: str) -> str:
    """A text with U+FFFD for control characters, which the terminal would obey."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", text.replace("\r\n", "\n"))


def read_any_bytes() -> None:
    """Read invalid bytes on standard input as replacement characters."""
    _reconfigure(sys.stdin, "replace")


def _reconfigure(stream: Any, errors: str) -> None:
    if not hasattr(stream, "reconfigure"):  # closed, or replaced by a caller
        return
    encoding = "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else None
    stream.reconfigure(encoding=encoding, errors=errors)


def _shown(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write the bytes of a file's name as they are, and what else has no form by its number."""
    for handler in ("surrogateescape", "backslashreplace"):
        try:
            return codecs.lookup_error(handler)(error)
        except UnicodeEncodeError:
            continue
    raise error
