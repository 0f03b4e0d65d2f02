"""Comments: write one comment on a post, rewarded for not being toxic or for being liked."""

from dialgym.tasks.comments.task import Comments

__all__ = ["Comments"]
