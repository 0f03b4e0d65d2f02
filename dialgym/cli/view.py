"""``dialgym view``: view runs, data sets and results in the browser, play and rate."""

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import (
    AllowHost,
    Host,
    OwnEnv,
    Port,
    Set,
    Trust,
    add_own,
    complete_runs,
    console,
    require_agents,
    settings,
)


def view(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|DATASET|RESULTS",
            help="Folders of runs and data sets, results.json, zoo:NAME, hf:NAME; by default the "
            "runs in runs/.",
            autocompletion=complete_runs,
        ),
    ] = None,
    port: Port = 8765,
    ratings: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where ratings of replies are kept.")
    ] = Path("ratings"),
    games: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the dialogues that are held here as a data set."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="PATH | zoo:NAME | hf:NAME",
            help="An agent or language model to talk to.",
        ),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Show what this learner of values thinks of each turn."),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the page in the browser at once.")
    ] = False,
    host: Host = "127.0.0.1",
    allow_host: AllowHost = None,
    env: OwnEnv = None,
    trust: Trust = False,
    set_: Set = None,
) -> None:
    """Browse dialogues, compare policies, follow runs, play and rate, in the browser.

    The page is served to this machine alone, and only to who has the address that is printed.
    """
    from dialgym.io.http_server import LOOPBACK, address_of, listening
    from dialgym.viewer import open_viewer
    from dialgym.viewer.app import serve_viewer
    from dialgym.viewer.guard import Guard
    from dialgym.viewer.inputs import newest_runs

    add_own(env)
    with listening("view", host, port) as listener:
        number = listener.getsockname()[1]
        viewer = open_viewer(
            paths if paths else newest_runs(),
            ratings,
            settings(set_),
            trust,
            None if model is None else _chat_reply(model, trust),
            None if values is None else _values(values, trust),
            games,
        )
        guard = Guard(number, (host, *(allow_host or ())))
        address = f"{address_of(host, listener)}/?token={guard.token}"
        count = len(viewer.inputs.sources)
        what = f"{count} source{'' if count == 1 else 's'}"
        console.print(f"showing {what} at {address}", soft_wrap=True)
        if host not in LOOPBACK:
            console.print(
                "other machines can reach it; the connection is not encrypted", style="dim"
            )
        console.print("end with Ctrl-C", style="dim")
        if browser:
            webbrowser.open(address)
        serve_viewer(viewer, listener, guard)


def _chat_reply(model: str, trust: bool) -> Any:
    """Reply of a language model or agent to the utterances before."""
    agent = require_agents().ChatAgent.load(model, trust=trust)
    return lambda text, history: agent.chat(text, history)


def _values(run: Path, trust: bool) -> Any:
    """A learner's value estimates for the turns of one dialogue, by index."""
    require_agents()
    from agents.training.value_estimates import turn_values

    return turn_values(run, trust)
