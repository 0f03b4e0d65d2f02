"""Everyday dialogues."""

from dialgym.tasks.daily_dialog.task import DailyDialog

__all__ = ["DailyDialog"]
