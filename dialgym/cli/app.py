"""The command-line program: its commands, and the report of their errors."""

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import dialgym
from dialgym.cli.benchmark import (
    benchmark,
    benchmark_panel,
    benchmark_references,
    benchmark_tables,
)
from dialgym.cli.chat import chat
from dialgym.cli.check_judge import check_judge_command
from dialgym.cli.check_user import check_user
from dialgym.cli.collect import collect
from dialgym.cli.common import complain, one_line, stopped
from dialgym.cli.data import data, import_, import_command, push
from dialgym.cli.evaluate import evaluate, report
from dialgym.cli.export import export
from dialgym.cli.leaderboard import leaderboard
from dialgym.cli.new import new
from dialgym.cli.play import play
from dialgym.cli.serve import serve
from dialgym.cli.tape import tape
from dialgym.cli.tasks import check, check_domain, list_ids
from dialgym.cli.terminal import read_any_bytes
from dialgym.cli.train import train, train_command
from dialgym.cli.train_models import train_guesser, train_reward_model
from dialgym.cli.view import view
from dialgym.cli.zoo import zoo
from dialgym.io.chat_client import STOPS
from dialgym.rewards.lm_judge import NoScoreError

KNOWN = (ValueError, ImportError, OSError, FloatingPointError, NoScoreError, *STOPS)
"""Errors of our functions for bad arguments, missing packages or files, NaN, and of models behind a
service."""
LATE = {"train": train_command, "import": import_command}
"""Commands whose options are fields of a dataclass, which takes a while to import."""


class Commands(TyperGroup):
    """Commands whose known errors are one line and exit code 2; 130 and 143 for signals.

    A command's name may be of two words: ``train reward-model`` stands beside ``train``. A second
    word in capitals stands for an argument: ``benchmark wordle`` is ``benchmark PANEL``.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        longer = " ".join(args[:2])
        if len(args) > 1 and longer in self.commands:
            return longer, self.commands[longer], args[2:]
        argument = f"{args[0]} PANEL"
        if len(args) > 1 and not args[1].startswith("-") and argument in self.commands:
            return args[0], self.commands[argument], args[1:]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completions: of its commands those of one word, which the shell can take."""
        found = super().shell_complete(ctx, incomplete)
        return [one for one in found if " " not in one.value]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; those of `LATE` make their options only now."""
        return LATE[cmd_name]() if cmd_name in LATE else super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise stopped(interrupt) from None
        except KNOWN as error:
            reader_is_gone = isinstance(error, BrokenPipeError)  # as of `list | head`
            if reader_is_gone or ctx.params.get("debug"):
                raise
            complain(str(error))
            raise typer.Exit(2) from error


class WithPanels(TyperCommand):
    """``benchmark``, after which a panel may be named, or another command of two words."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completions of its options, and of the words that may follow it."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            return found
        panel = ctx.parent.command.commands["benchmark PANEL"].params[0]
        return [*found, *panel.shell_complete(ctx, incomplete)]


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dialgym {dialgym.__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Dialogue tasks as Gymnasium environments, and agents that learn to talk in them."""
    warnings.formatwarning = one_line
    read_any_bytes()
    if os.getcwd() not in sys.path:  # tasks of your own are modules of the current folder
        sys.path.append(os.getcwd())  # at the end: no file there hides what is installed


app.command("list")(list_ids)
app.command("zoo")(zoo)
app.command("play")(play)
app.command("chat")(chat)
app.command("check")(check)
app.command("check-domain")(check_domain)
app.command("check-user")(check_user)
app.command("check-judge")(check_judge_command)
app.command("collect")(collect)
app.command("import")(import_)
app.command("push")(push)
app.add_typer(new, name="new")
app.add_typer(data, name="data")
app.add_typer(tape, name="tape")
app.command("train")(train)
app.command("train guesser")(train_guesser)
app.command("train reward-model")(train_reward_model)
app.command("report")(report)
app.add_typer(serve, name="serve")
app.command("export")(export)
app.command("view")(view)
app.command("evaluate")(evaluate)
app.command("benchmark", cls=WithPanels)(benchmark)
app.command("benchmark PANEL")(benchmark_panel)
app.command("benchmark references")(benchmark_references)
app.command("benchmark tables")(benchmark_tables)
app.add_typer(leaderboard, name="leaderboard")
