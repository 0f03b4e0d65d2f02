"""``dialgym check-user``: audit a simulated user against a rule user with the same goals."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import EnvId, Set, Trust, console, print_tables, progress, settings, words
from dialgym.io.files import check_writable, parse_yaml
from dialgym.simulators.language_model import LM, is_language_model

RECORD, PAGE = "audit.json", "audit.html"
"""Files of an audit in its folder."""

Policies = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Policies of the learner: registered names, runs, models; by default the task's "
        "first scripted one, and random.",
    ),
]
Goals = Annotated[
    int, typer.Option("--episodes", "-n", min=2, help="Goals; each is played by all.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of the goals.")]
Record = Annotated[
    Path | None, typer.Option(metavar="TAPE", help="Tape that takes a language model's words.")
]
Replay = Annotated[
    Path | None, typer.Option(metavar="TAPE", help="Tape that gives them; nobody is asked.")
]


def check_user(
    id: EnvId,
    simulator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The user: a registered name, lm or openai:MODEL, a run, zoo:NAME, MODULE:CLASS, "
            "or a mapping, '{lm: {model: MODEL, base_url: URL}}'.",
        ),
    ],
    twin: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The user that it is compared with; by default the task's own."
        ),
    ] = None,
    policies: Policies = None,
    episodes: Goals = 100,
    seed: Seed = 0,
    record: Record = None,
    replay: Replay = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help=f"Folder for {RECORD} and {PAGE}, with examples."),
    ] = None,
    set_: Set = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A setting of the user."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Check a simulated user: its faults beside those of a rule user with the same goals.

    Both play the same goals with the same policies. A fault is an alarm where the user has it more
    often, at a family-wise error of 5 %. With several policies it is told which of them game the
    user, beside the first. The exit code is 1 if there is an alarm, or a policy games the user.
    """
    from dialgym.experiments.user_audit import audit_user

    tapes = given_tapes(record, replay)
    user = with_settings_of(parse_simulator(simulator, "--simulator"), settings(param), tapes)
    chosen = None if policies is None else words(policies)
    if out is not None:
        check_writable(out)
    with progress(simulator, 2 * episodes * len(chosen or "12")) as advance:
        audit = audit_user(
            id,
            user,
            None if twin is None else parse_simulator(twin, "--twin"),
            chosen,
            episodes,
            seed,
            settings(set_),
            trust=trust,
            report=advance,
        )
    print_found(audit)
    if out is not None:
        from dialgym.experiments.user_audit_page import write_user_audit

        audit.to_json(out / RECORD)
        write_user_audit(out / PAGE, audit)
        console.print(f"open {out / PAGE}", soft_wrap=True)
    if audit.alarms or audit.gaming:
        raise typer.Exit(1)


def given_tapes(record: Path | None, replay: Path | None) -> dict[str, str]:
    """The tapes that are given, as settings."""
    tapes = {"record": record, "replay": replay}
    return {name: str(path) for name, path in tapes.items() if path is not None}


def print_found(found: Any) -> None:
    """Print tables, caption and verdict of an audit or a check."""
    print_tables(found)
    console.print(found.verdict, style="bold", soft_wrap=True)


def parse_simulator(text: str, option: str) -> Any:
    """A name, or the mapping that a text in YAML is.

    Raises:
        ValueError: it is neither.
    """
    if not text.startswith("{"):
        return text
    given = parse_yaml(text, option)
    if not isinstance(given, dict):
        raise ValueError(f"{option}: expected a name or a mapping; got {text!r}.")
    return given


def with_settings_of(simulator: Any, own: dict[str, Any], tapes: dict[str, str]) -> Any:
    """A simulator with further settings, and with a tape, where it is a language model.

    Raises:
        ValueError: a tape is given, and it is none.
    """
    given = {"name": simulator} if isinstance(simulator, str) else dict(simulator)
    name = given.get("name")
    if name == LM or LM in given:
        inner = given.get(LM, {})
        more = {**own, **tapes}
        given.pop("name", None)
        return {**given, LM: {**inner, **more}} if isinstance(inner, dict) else given
    if tapes and not is_language_model(name):
        raise ValueError(
            "check-user: --record and --replay are of language models behind a service (lm, "
            f"openai:MODEL); got {simulator!r}. Leave them out."
        )
    return {**given, **own, **tapes}
