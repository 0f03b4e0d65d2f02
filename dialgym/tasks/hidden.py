"""Views of a state without a party's hidden fields."""

from collections.abc import Iterable
from typing import Any, NoReturn, Self


class HiddenStateError(RuntimeError):
    """Error of a player that reads what its party is not told."""


class Hidden:
    """Stands in a state for what a party is not told: whatever is asked of it is refused.

    It can be copied and printed, so that a policy may copy its state to think ahead, and may put
    a supposition in its place.

    Args:
        value: what is hidden; `reveal` gives it to the rules.
        place: the names of the task, of the party and of the attribute.
    """

    __slots__ = ("_place", "_value")

    def __init__(self, value: Any, place: tuple[str, str, str]) -> None:
        self._value, self._place = value, place

    def copy(self) -> Self:
        """Itself: there is nothing in it that changes."""
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<hidden: {self._place[2]}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # a protocol that somebody looks for
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        task, party, name = self._place
        raise HiddenStateError(
            f"{task}: the {party} is not told {name!r}, and who plays it has asked for that. A "
            "policy goes by what its party has seen (task.transcript(state, party)). One that is "
            "meant to know more declares itself: oracle = True; tables then mark it."
        )

    __getitem__ = __iter__ = __len__ = __contains__ = __bool__ = __call__ = _refuse
    __index__ = __int__ = __float__ = __array__ = __hash__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = _refuse


def hide(state: Any, names: Iterable[str], task: str, party: str) -> Any:
    """A copy of a state with `Hidden` in the place of the attributes named, once."""
    seen, put = state.copy(), object.__setattr__
    for name in names:
        put(seen, name, Hidden(reveal(getattr(seen, name)), (task, party, name)))
    return seen


def reveal(value: Any) -> Any:
    """Hidden part of a state, for rules that tell a party no more of it than it may know."""
    return value._value if type(value) is Hidden else value
