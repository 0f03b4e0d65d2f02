"""Visual dialogue: find a hidden image among many by asking about it."""

from dialgym.tasks.visual_dialogue.pool import Pool, SceneBook
from dialgym.tasks.visual_dialogue.task import VisualDialogue
from dialgym.tasks.visual_dialogue.types import VisualState

__all__ = ["Pool", "SceneBook", "VisualDialogue", "VisualState"]
