"""Running the command line in a test."""

from unittest.mock import patch

from typer.main import get_command
from typer.testing import CliRunner

from dialgym.cli.app import app

COMMAND = get_command(app)
"""Made once: that takes 30 ms, which the runner would spend on each run."""


def run(*arguments, keys=""):
    with patch("typer.testing._get_command", lambda _: COMMAND):
        return CliRunner().invoke(app, list(arguments), input=keys, env={"COLUMNS": "200"})


def succeed(*arguments, keys=""):
    result = run(*arguments, keys=keys)
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments):
    """The error: one line on the error stream, exit code 2, no traceback."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]
