"""``dialgym chat``: talk to an agent or a language model at the terminal."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import (
    Param,
    Trust,
    complain,
    console,
    known_command,
    require_agents,
    settings,
    show_commands,
)
from dialgym.cli.terminal import visible
from dialgym.cli.verdict import AskRatings, ask_success, check_ratings
from dialgym.language.model_text import READINGS
from dialgym.simulators.human import speaker_style
from dialgym.simulators.language_model import DRAWN, FORM, is_language_model, language_model

COMMANDS = {
    "/reset": "Forget what was said.",
    "/undo": "Forget the last exchange.",
    "/help": "Show these commands.",
    "/quit": "Leave; so do Ctrl-D and Ctrl-C.",
}


def chat(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="PATH | zoo:NAME | hf:NAME | openai:MODEL",
            help="An agent or language model.",
        ),
    ],
    temperature: Annotated[
        float, typer.Option(help="Of sampling; below 1 sharpens the distribution.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Sample from the k likeliest tokens.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="Sample from the likeliest tokens of this total probability."),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of a reply.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Always the likeliest token.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of sampling; random by default.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    trust: Trust = False,
    param: Param = None,
    ratings: AskRatings = None,
) -> None:
    """Talk to an agent, or to a language model, at the terminal; /help shows what else it does.

    It takes a saved model, the folder of a run, zoo:NAME, or a causal language model: its folder,
    hf:NAME or hf:NAME@REVISION; or openai:MODEL behind a service, with -p base_url=URL. An agent
    that chooses acts plays a dialogue where it was trained: you are the user. Lines may be piped
    in.
    """
    check_ratings(ratings)
    if is_language_model(model):
        given = {
            "temperature": 0.0 if deterministic else temperature,
            "top_p": top_p,
            **({"max_tokens": max_tokens} if max_tokens else {}),
            **({"extra": {"top_k": top_k}} if top_k else {}),
            **settings(param, "--param"),
        }
        with served_replies(model, given, seed) as reply:
            _talk(reply, model, ratings)
        return
    agents = require_agents()
    own = settings(param, "--param")
    speaker = agents.load_speaker(model, trust, device, **own)
    if isinstance(speaker, agents.ActAgent):
        _play_where_trained(model, seed, trust, own, ratings)
        return
    sampling = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "deterministic": deterministic,
        **speaker.sampling,
    }
    agent = agents.ChatAgent(speaker.talker, **sampling)
    from agents.decoding.sampling import generator_of

    generator = generator_of(seed)
    _talk(lambda text, history: agent.chat(text, history, seed=generator), model, ratings)


@contextmanager
def served_replies(
    model: str, settings: dict[str, Any], seed: int | None
) -> Iterator[Callable[[str, list[str]], str]]:
    """Replies of a language model behind a service; at the end it is told what was asked.

    Args:
        model: ``openai:MODEL``.
        settings: as of `language_model`.
        seed: of sampling; None for a random one.
    """
    from dialgym.io.model_settings import usage_text
    from dialgym.language.messages import ASSISTANT, USER

    speaker = language_model(model, **settings)
    for name in sorted({*FORM, "on_miss"} - {"answer"}):
        if name in settings:
            raise ValueError(
                f"--param: {name!r} is of a party of a task, and nothing heeds it in a chat. Leave "
                f"it out, or talk within a task: dialgym play ID --against {model}."
            )
    rng = random.Random(seed)

    def reply(text: str, history: list[str]) -> str:
        roles = (USER, ASSISTANT)
        said = [*history, text]
        messages = [{"role": roles[i % 2], "content": line} for i, line in enumerate(said)]
        answered = speaker.client.complete(messages, rng.randrange(DRAWN), len(history) // 2)
        return READINGS[speaker.form.answer](runner.run(answered).text).strip()

    with asyncio.Runner() as runner:
        try:
            yield reply
        finally:
            runner.run(speaker.client.close())
            console.print(usage_text(speaker.client.usage.counts()), style="dim")


def _talk(reply: Callable[[str, list[str]], str], model: str, ratings: Path | None) -> None:
    """Let a person talk to who gives the replies, until it leaves."""
    session = Session(reply)
    try:
        while session.handle(console.input(_name("user"))):
            pass
    except (EOFError, KeyboardInterrupt):
        console.print()
    question = "Did you get all that you wanted?"
    ask_success(ratings, session.history, question, settings={"model": model})
    console.print("Goodbye.")


def _play_where_trained(
    model: str,
    seed: int | None,
    trust: bool,
    policy_kwargs: dict[str, Any],
    ratings: Path | None,
) -> None:
    """Let a person play the other party of an agent that chooses acts."""
    from dialgym.cli.play import play_dialogue
    from dialgym.registry import make_task
    from dialgym.rollouts.player import open_where_trained
    from dialgym.views.speakers import other_party

    _, entry, given = open_where_trained(model, trust)
    task = make_task(entry, {})
    person = other_party(task, given.pop("learner", "system"))
    given.pop("simulator", None)
    kwargs = {**given, **task.for_people}
    more: dict[str, Any] = {"policy_kwargs": policy_kwargs, "ratings": ratings}
    play_dialogue(entry, person, model, kwargs, seed=seed, trust=trust, **more)


class Session:
    """A chat at the terminal.

    Args:
        reply: what is said to a text, given the utterances before.
    """

    def __init__(self, reply: Callable[[str, list[str]], str]) -> None:
        self._reply = reply
        self.history: list[str] = []

    def handle(self, line: str) -> bool:
        """Handle a line of the person; False if the chat is over."""
        line = line.strip()
        if line.startswith("/"):
            return self._command(line)
        if line:
            self._say(line)
        return True

    def _say(self, text: str) -> None:
        try:
            answer = self._reply(text, self.history)
        except ValueError as error:  # a text too long, say; the next may do
            complain(str(error))
            return
        self.history += [text, answer]
        console.print(_name("system"), end="", markup=True)
        console.print(visible(answer), soft_wrap=True)  # a service may send anything

    def _command(self, name: str) -> bool:
        if not known_command(name, COMMANDS):
            return True
        if name == "/help":
            show_commands(COMMANDS)
        elif name in ("/reset", "/undo"):
            self.history = self.history[:-2] if name == "/undo" else []
            console.print(_left(self.history), style="dim")
        return name != "/quit"


def _left(history: list[Any]) -> str:
    exchanges = len(history) // 2
    return f"{exchanges} exchange{'' if exchanges == 1 else 's'} remembered."


def _name(party: str) -> str:
    return f"[{speaker_style(party)}]{party}:[/] "
