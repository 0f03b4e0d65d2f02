"""Logged: your own dialogues, imported from any format."""

from dialgym.tasks.logged.task import Logged

__all__ = ["Logged"]
