"""DailyDialog: reply in everyday dialogues, scored against what people said."""

from dialgym.tasks.daily_dialog.task import DailyDialog

__all__ = ["DailyDialog"]
