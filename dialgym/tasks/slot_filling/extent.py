"""How long the utterances of a domain can be, and of which characters."""

from collections.abc import Iterable

from dialgym.tasks.slot_filling.domains import Domain
from dialgym.tasks.slot_filling.ontology import DONTCARE

SYNTAX = '()=!," |.0123456789_-'
WORDS = (
    "inform request confirm select hello bye affirm negate deny reqalts reqmore repeat null "
    "thankyou ack restart silence name type none "
)
TOLD, NAMED = 12, 32
"""Items with values, and names left out, that one act may have."""
HYPOTHESES = 6


def charset(domain: Domain) -> str:
    """The characters of everything that is said in a domain."""
    return "".join(sorted({*SYNTAX, *WORDS, *"".join(_texts(domain)), "\\"}))


def longest_act(domain: Domain) -> int:
    """Characters of the longest act that the system can mean to say."""
    rows = domain.database.rows
    cells = [f'{slot}="{_quoted(value)}",' for row in rows for slot, value in row.items()]
    name = max(len(_quoted(row["name"])) for row in rows) + len('name!="",')
    told = sum(sorted(_longest(cells).values())[-TOLD:])
    return len("inform()") + told + NAMED * name


def longest_user_act(domain: Domain) -> int:
    """Characters of the longest act that the user can mean to say."""
    ontology = domain.ontology
    items = [f'{s}="{_quoted(v)}",' for s, vs in ontology.informable.items() for v in vs]
    items.append(f'type="{ontology.type}",')
    longest = max(map(len, items))
    return len("thankyou()") + TOLD * longest + sum(len(s) + 1 for s in ontology.requestable)


def _longest(cells: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for cell in cells:
        slot = cell.partition("=")[0]
        found[slot] = max(found.get(slot, 0), len(cell))
    return found


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _texts(domain: Domain) -> Iterable[str]:
    yield domain.ontology.type
    yield DONTCARE
    yield from domain.ontology.requestable
    for slot, values in domain.ontology.informable.items():
        yield slot
        yield from values
    for row in domain.database.rows:
        yield from row.values()
