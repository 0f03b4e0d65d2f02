"""Slot filling: find a row of a database for a user who is heard through noise."""

from dialgym.tasks.slot_filling.task import SlotFilling
from dialgym.tasks.slot_filling.types import SlotFillingState

__all__ = ["SlotFilling", "SlotFillingState"]
