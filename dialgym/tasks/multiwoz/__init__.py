"""Multi-domain dialogues about a city: find, ask about and book, as in MultiWOZ and ConvLab."""

from dialgym.tasks.multiwoz.task import MultiWOZ, MultiWOZDialogue

__all__ = ["MultiWOZ", "MultiWOZDialogue"]
