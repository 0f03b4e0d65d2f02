"""Door in for Gymnasium's environments of texts: ``gymnasium:ID``, also ``gymnasium:MODULE:ID``."""

from dialgym.bridges.foreign import ForeignTask
from dialgym.testing.sessions import TextEnvironment, gymnasium_environment


class GymnasiumTask(ForeignTask):
    """Dialogues with an environment of Gymnasium's registry whose actions are strings."""

    scheme = "gymnasium"

    def find(self) -> TextEnvironment:
        """The environment of an id."""
        return gymnasium_environment(self.address)
