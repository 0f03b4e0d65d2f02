"""What is wrong with a domain that can be read, and how large it is."""

from collections import Counter
from collections.abc import Iterator

from dialgym.errors import did_you_mean
from dialgym.tasks.slot_filling.database import MISSING
from dialgym.tasks.slot_filling.domains import Domain
from dialgym.tasks.slot_filling.goals import GoalGenerator
from dialgym.tasks.slot_filling.ontology import NAME


def find_faults(domain: Domain, shared_names: bool = False) -> list[str]:
    """One message for each thing that would mislead a dialogue; none where all is well.

    That is: cells whose value the ontology does not list, names that several rows share (unless
    `shared_names` are wanted), and a database without goals.
    """
    found = [*_unlisted(domain)]
    if not shared_names:
        found += _shared(domain)
    try:
        GoalGenerator(domain.database)
    except ValueError as error:
        found.append(str(error))
    return found


def sizes(domain: Domain) -> dict[str, str]:
    """What there is in a domain, by a name for each figure."""
    ontology, database = domain.ontology, domain.database
    counts = {slot: len(values) for slot, values in ontology.informable.items()}
    asked = ontology.system_requestable
    return {
        "domain": f"{ontology.domain} ({ontology.type})",
        "source": domain.source,
        "rows": str(len(database)),
        "slots that the system asks for": ", ".join(f"{slot} {counts[slot]}" for slot in asked),
        "other informable slots": ", ".join(
            f"{s} {n}" for s, n in counts.items() if s not in asked
        ),
        "requestable slots": str(len(ontology.requestable)),
        "belief vector": str(ontology.belief_size),
        "summary acts": str(ontology.action_count),
        "values that no row has": _listing(_unused(domain)),
        f"cells {MISSING!r}": _listing(_missing(domain)),
    }


def _unlisted(domain: Domain) -> Iterator[str]:
    for slot, known in domain.ontology.index.items():
        rows = domain.database.rows
        wrong = [r for r, row in enumerate(rows) if row[slot] not in known and row[slot] != MISSING]
        if wrong:
            value = rows[wrong[0]][slot]
            yield (
                f"database of {domain.ontology.domain}: expected values of {slot!r} that the "
                f"ontology lists, or {MISSING!r}; got {value!r} in row {wrong[0] + 1} "
                f"({len(wrong)} of {len(rows)} rows).{did_you_mean(value, known)} Mend the row, "
                f"or list the value under 'informable'."
            )


def _shared(domain: Domain) -> Iterator[str]:
    counts = Counter(row[NAME] for row in domain.database.rows)
    shared = {name: count for name, count in counts.items() if count > 1}
    if shared:
        name, count = next(iter(shared.items()))
        yield (
            f"database of {domain.ontology.domain}: expected a {NAME!r} of its own for each row; "
            f"got {name!r} in {count} rows (shared names: {len(shared)}). Users know a row by its "
            "name: give each another, or accept them with --shared-names."
        )


def _unused(domain: Domain) -> dict[str, int]:
    bits = domain.database.bits
    slots = domain.ontology.informable.items()
    return {slot: sum(not bits(slot, value) for value in values) for slot, values in slots}


def _missing(domain: Domain) -> dict[str, int]:
    bits = domain.database.bits
    return {slot: bits(slot, MISSING).bit_count() for slot in domain.ontology.informable}


def _listing(counts: dict[str, int]) -> str:
    return ", ".join(f"{slot} {count}" for slot, count in counts.items() if count) or "none"
