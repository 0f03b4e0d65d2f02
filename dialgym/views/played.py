"""An environment's spec, with what is really played."""

from copy import copy
from typing import Any

from dialgym.tasks import Task


class Played:
    """Has a `spec` whose settings are those that the task came to have.

    ``gym.make`` gives a spec the settings that it was called with. Where the surroundings decide
    what they mean, such as which files a name stands for, ``spec.kwargs`` says what was found;
    an env made from it again, anywhere, plays the same or cannot be made.
    """

    task: Task
    _spec: Any = None

    @property
    def spec(self) -> Any:
        """Gymnasium's `EnvSpec`, or None where the env was not made by an id."""
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        if spec is not None:
            spec, kwargs = copy(spec), spec.kwargs
            spec.kwargs = {**kwargs, **self.task.played}
        self._spec = spec
