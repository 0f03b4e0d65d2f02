"""The command line ``dialgym``; `dialgym --help` lists its commands."""

from dialgym.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """The entry point of the program `dialgym`."""
    app()
