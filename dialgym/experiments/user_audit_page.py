"""An audit of a user as one HTML file: the verdict, its tables, and dialogues with each fault."""

from collections.abc import Iterator
from html import escape
from os import PathLike
from pathlib import Path

from dialgym.experiments.pages import draw_utterance, facts_list, page, section
from dialgym.experiments.samples import SampleUtterance
from dialgym.experiments.user_audit import FaultFigures, UserAudit
from dialgym.experiments.user_faults import FAULTS, MANNERS, AuditedDialogue
from dialgym.io.files import write_text
from dialgym.io.html_tables import html_table
from dialgym.versions import command_line, versions

SHOWN = 2
"""Dialogues that are shown of each fault."""


def write_user_audit(path: str | PathLike[str], audit: UserAudit) -> None:
    """Write an audit as one HTML file that needs no network.

    Raises:
        OSError: the file cannot be written.
    """
    faulty = [each for each in audit.faults if each.examples]
    faulty.sort(key=lambda each: (not each.is_alarm, -each.user.value))
    parts = [
        section("verdict", "Verdict", f"<p>{escape(audit.verdict)}</p>"),
        section("figures", "Figures", "".join(_tables(audit))),
        section("examples", "Examples", "".join(map(_examples, faulty))) if faulty else "",
        section("meaning", "Faults and figures", facts_list(_meanings())),
        section("origin", "How it was made", _origin(audit)),
    ]
    title = f"{audit.user} as the {audit.party} of {audit.env_id.rpartition('/')[2]}"
    write_text(Path(path), page(title, "".join(parts)))


def _tables(audit: UserAudit) -> Iterator[str]:
    for title, rows in audit.tables():
        yield f"<h3>{escape(title)}</h3>{html_table(rows)}"
    yield f'<p class="note">{escape(audit.caption)}</p>'


def _examples(figures: FaultFigures) -> str:
    name, count = figures.fault.name, len(figures.examples)
    badge = ' <b class="bad">alarm</b>' if figures.is_alarm else ""
    dialogues = "".join(_dialogue(one, place) for one, place in figures.examples[:SHOWN])
    total = "1 dialogue" if count == 1 else f"{count} dialogues"
    head = f"<h3>{escape(name)}{badge}</h3><h4>The user {escape(figures.fault.about)}: {total}</h4>"
    return f'{head}<div class="row">{dialogues}</div>'


def _dialogue(dialogue: AuditedDialogue, place: int) -> str:
    """A dialogue, with the line that shows the fault in another colour."""
    seed, episode = dialogue.job
    badge = '<b class="good">solved</b>' if dialogue.success else '<b class="bad">not solved</b>'
    head = f"<strong>{escape(dialogue.policy)}</strong> {badge} seed {seed}, episode {episode}"
    shown = [(line, "") for line in dialogue.notes]
    shown += [(line, "red" if i == place else "") for i, line in enumerate(dialogue.lines)]
    lines = "".join(
        draw_utterance(
            SampleUtterance(
                line.speaker, [(line.text or "(nothing)", style)],
                line.speaker == dialogue.party, line.private,
            )
        )
        for line, style in shown
    )  # fmt: skip
    return f'<article><p class="head">{head}</p>{lines}</article>'


def _meanings() -> dict[str, str]:
    return {each.name: each.about for each in (*FAULTS, *MANNERS)}


def _origin(audit: UserAudit) -> str:
    facts = {
        "command": command_line() or "from Python",
        "environment": audit.env_id,
        "settings": ", ".join(f"{k}={v}" for k, v in audit.settings.items()) or "those of the id",
        "user": audit.user,
        **({"model": str(dict(audit.model))} if audit.model else {}),
        "twin": audit.twin,
        "policies": ", ".join(audit.policies),
        "goals": f"{audit.episodes} of seed {audit.seed}",
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items() if v),
    }
    return facts_list(facts)
