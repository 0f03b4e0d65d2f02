"""Written English in a small character set: what data from elsewhere is brought to."""

import re
import string
import unicodedata

CHARSET = string.ascii_letters + string.digits + string.punctuation + " "
"""The printable characters of ASCII."""

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "…": "...",
        "。": ".",
        "、": ",",
        "×": "x",
        "£": "GBP ",
        "€": "EUR ",
        "¥": "JPY ",
        "°": " degrees",
    }
)
_SPACES = re.compile(r"\s+")


def plain(text: str) -> str:
    """`text` in `CHARSET`, on one line: accents go, typographic marks become those of ASCII.

    What has no such form is left out.
    """
    spaced = _SPACES.sub(" ", text)  # before those that are not of ASCII go
    decomposed = unicodedata.normalize("NFKD", spaced.translate(_PLAIN))
    ascii_only = decomposed.replace("\u2044", "/").encode("ascii", "ignore").decode()
    return _SPACES.sub(" ", "".join(c if c.isprintable() else " " for c in ascii_only)).strip()
