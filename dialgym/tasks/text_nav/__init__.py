"""A house of text: find a thing, and bring it to where it is used."""

from dialgym.tasks.text_nav.task import TextNav
from dialgym.tasks.worlds import WorldState

__all__ = ["TextNav", "WorldState"]
