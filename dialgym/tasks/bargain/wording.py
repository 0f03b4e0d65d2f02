"""Words and clauses of English that readers of offers share."""

import re

_ENDS = re.compile(
    r"(?:[;!?]+|\.(?!\d)|,(?!\d))\s*|\s(?:-+\s)+|(?<!everything)(?<!all)(?<!else)"
    r"\s(?=(?:but|because|since|unless)\b)"
)


def clauses(text: str) -> list[str]:
    """The parts of a text between its marks, and before ``but`` and the like."""
    return [part for part in _ENDS.split(text) if part]
