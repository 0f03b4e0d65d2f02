"""The command line: ``dialgym list | play | check | train | evaluate | benchmark``."""

from dialgym.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """The entry point of the program `dialgym`."""
    app()
