"""``dialgym serve``: environments and models over HTTP, for programs elsewhere."""

from typing import Annotated

import typer

from dialgym.cli.common import AllowHost, EnvId, Host, Port, Set, complete_ids, console, settings
from dialgym.registry import entry_of, make_task

serve = typer.Typer(no_args_is_help=True, help="Serve environments and models over HTTP.")


@serve.command("openenv")
def serve_openenv(
    id: EnvId,
    sessions: Annotated[
        int, typer.Option(min=1, help="Sessions at once; a further one is refused.")
    ] = 64,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allow_host: AllowHost = None,
    set_: Set = None,
) -> None:
    """Serve an environment by OpenEnv's protocol: each session of /ws is a dialogue.

    Trainers that know OpenEnv play it by the address alone. `dialgym export openenv` writes the
    same server as a folder with a Dockerfile.

    Pages of other sites, and calls by foreign names, are refused; there is no token.
    """
    from dialgym.bridges import openenv
    from dialgym.io.http_server import Callers, Guarded, address_of, listening
    from dialgym.io.http_server import serve as serve_app

    app = openenv.app(id, sessions, **settings(set_))
    with listening("serve openenv", host, port) as listener:
        _say(f"serving {id} at {address_of(host, listener)}; end with Ctrl-C")
        guarded = Guarded(app, Callers((host, *(allow_host or ()))))
        serve_app(guarded, listener, openenv.PURPOSE)


@serve.command("visual")
def serve_visual(
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="An id of visual dialogue, or MODULE:CLASS.",
            autocompletion=complete_ids,
        ),
    ] = "dialgym/VisualDialogue-v0",
    questioner: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who asks for `/fetch_q_bot_response`; else nobody."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 5000,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Requests that the model is given at once, at most.")
    ] = 64,
    allow_host: AllowHost = None,
    set_: Set = None,
) -> None:
    """Serve the answerer and the guesser of a visual dialogue over HTTP.

    Environments elsewhere use it with guesser=remote:URL and answerer=remote:URL; so does code
    written for ILQL's server. Who serves which images is set as for the environment: for VisDial,
    -s pool=visdial:PATH -s guesser=learned:PATH.

    Pages of other sites, and calls by foreign names, are refused; there is no token.
    """
    from dialgym.io.http_server import Callers, address_of, listening
    from dialgym.tasks.visual_dialogue import VisualDialogue
    from dialgym.tasks.visual_dialogue.server import serve_bots
    from dialgym.tasks.visual_dialogue.serving import Bots

    task = make_task(entry_of(id), settings(set_))
    if not isinstance(task, VisualDialogue):
        raise ValueError(f"serve visual: expected an id of visual dialogue; got {id!r}.")
    asking = None if questioner is None else task.speaker_named("system", questioner)
    bots = Bots(task, task.answerer, asking)
    with listening("serve visual", host, port) as listener:
        count = f"{len(task.pool):,} images"
        _say(f"serving {count} at {address_of(host, listener)}; end with Ctrl-C")
        serve_bots(bots, listener, max_batch, Callers((host, *(allow_host or ()))))


def _say(text: str) -> None:
    console.print(text, soft_wrap=True)
