"""Logged: dialogues of one's own, imported from any format."""

from dialgym.tasks.logged.task import Logged

__all__ = ["Logged"]
