"""Comments on what somebody wrote."""

from dialgym.tasks.comments.task import Comments

__all__ = ["Comments"]
