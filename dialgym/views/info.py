"""The `info` of all views: one structure, with the same keys and types at every step.

What it says is of the utterance that ended with the step. At a step within an utterance, and after
`reset`, everything in it is empty: "", 0, 0.0 and False. So ``info["turn"]`` tells whether an
utterance has ended, and which.

| key | type | of the utterance that has just ended |
|---|---|---|
| ``utterance`` | str | what the learner said, as the rules got it |
| ``reply`` | str | the last that the learner heard then |
| ``turn`` | int | its number, from 1 |
| ``reward_components`` | dict of float | the parts of the reward, by `Facts.components` |
| ``is_success`` | bool | whether it solved the task; False while the dialogue goes on |
| ``transcript`` | str | all that the learner has seen, once the dialogue is over |
| ``metrics`` | dict of float | how it went, once it is over; of tasks with `Facts.metrics` alone |

With ``text_info=False`` everything is a NumPy array of numbers, of shape () in single views, as
buffers and tensors want it: the texts are left out, and in place of the dicts there is a key for
each of their names, ``reward_components/wrong guess``, ``metrics/length``. `group_of` reads both.
With ``action_masks=True`` there is ``action_mask`` too, int8.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.rewards import Components
from dialgym.tasks import BatchOutcome, Task
from dialgym.tasks.batch import Exchange

Info = dict[str, Any]
TEXTS = ("utterance", "reply", "transcript")


def flat_key(group: str, name: str) -> str:
    """The key of a component or metric in an info of numbers alone."""
    return f"{group}/{name}"


def group_of(info: Mapping[str, Any], group: str) -> Info:
    """The ``reward_components`` or ``metrics`` of an info by name, masks aside; {} without any."""
    nested = info.get(group)
    if isinstance(nested, dict):
        return {name: value for name, value in nested.items() if not name.startswith("_")}
    start = flat_key(group, "")
    return {key.removeprefix(start): v for key, v in info.items() if key.startswith(start)}


class InfoForm:
    """The structure of the info of one dialogue.

    Args:
        task: the rules, whose `facts.components` names the parts of the learner's reward.
        learner: the party that the info is for.
        more: names of parts that options add.
    """

    def __init__(self, task: Task, learner: str, more: Sequence[str] = ()) -> None:
        names = (*task.facts.components.get(learner, ()), *more)
        self._zeros: Components = dict.fromkeys(names, 0.0)
        self._metrics = dict.fromkeys(task.facts.metrics, 0.0)
        self._blank: Info = {
            "utterance": "",
            "reply": "",
            "turn": 0,
            "reward_components": self._zeros,
            "is_success": False,
            "transcript": "",
        }
        if self._metrics:
            self._blank["metrics"] = self._metrics

    def blank(self) -> Info:
        """The info of a step with which no utterance ended."""
        info = self._blank.copy()  # what most steps cost beside the token: quicker than {**...}
        info["reward_components"] = self._zeros.copy()
        if self._metrics:
            info["metrics"] = self._metrics.copy()
        return info

    def of_turn(self, utterance: str, turn: int, exchange: Exchange) -> Info:
        """The info of a step with which an utterance ended."""
        info = self.blank()
        info["utterance"], info["turn"] = utterance, turn
        info["reward_components"].update(exchange.components)
        if exchange.heard:
            info["reply"] = exchange.heard[-1].text
        return info

    def end(
        self, info: Info, success: bool | None, transcript: str, metrics: Mapping[str, float]
    ) -> None:
        """Note in the info of a step that the dialogue is over with it."""
        info["is_success"], info["transcript"] = bool(success), transcript
        if self._metrics:
            info["metrics"] = {**self._metrics, **metrics}


class NumbersInfoForm(InfoForm):
    """The structure without texts: NumPy arrays of shape (), no dict among them."""

    def __init__(self, task: Task, learner: str, more: Sequence[str] = ()) -> None:
        super().__init__(task, learner, more)
        zero = np.zeros(())
        self._blank = {"turn": np.zeros((), np.int64)}
        self._blank |= {flat_key("reward_components", name): zero for name in self._zeros}
        self._blank["is_success"] = np.zeros((), bool)
        self._blank |= {flat_key("metrics", name): zero for name in self._metrics}

    def blank(self) -> Info:
        """Fresh arrays: tensors that are made of them share their memory."""
        return {name: value.copy() for name, value in self._blank.items()}

    def of_turn(self, utterance: str, turn: int, exchange: Exchange) -> Info:
        info = self.blank()
        info["turn"] = np.array(turn, np.int64)
        return info | _flat("reward_components", exchange.components)

    def end(
        self, info: Info, success: bool | None, transcript: str, metrics: Mapping[str, float]
    ) -> None:
        info["is_success"] = np.array(bool(success))
        info.update(_flat("metrics", metrics))


def info_form(task: Task, learner: str, text: bool, more: Sequence[str] = ()) -> InfoForm:
    """The structure of the info of one dialogue, with texts or of numbers alone."""
    return InfoForm(task, learner, more) if text else NumbersInfoForm(task, learner, more)


def _flat(group: str, values: Mapping[str, float]) -> Info:
    return {flat_key(group, name): np.array(v, np.float64) for name, v in values.items()}


class BatchInfoForm:
    """The structure of the info of N dialogues, in Gymnasium's form: arrays (N,) and masks.

    It is what `SyncVectorEnv` makes of the infos of N single envs. Arrays in which every row is
    empty are shared by all infos and read-only.

    Args:
        task, learner, more: as in `InfoForm`.
        num_envs: N.
        text: whether texts are in it; without them it is flat.
    """

    def __init__(
        self,
        task: Task,
        learner: str,
        num_envs: int,
        text: bool = True,
        more: Sequence[str] = (),
    ) -> None:
        self.text = text
        self.num_envs = num_envs
        self._everywhere = _read_only(np.ones(num_envs, bool))
        no_text = _read_only(np.full(num_envs, "", object))
        zero = _read_only(np.zeros(num_envs))
        self._metric_names = tuple(task.facts.metrics)
        groups = {"reward_components": (*task.facts.components.get(learner, ()), *more)}
        groups |= {"metrics": self._metric_names} if self._metric_names else {}
        nested = {group: self._masked(dict.fromkeys(n, zero)) for group, n in groups.items()}
        flat = {flat_key(group, name): zero for group, n in groups.items() for name in n}
        numbers: Info = {
            "turn": _read_only(np.zeros(num_envs, np.int64)),
            "is_success": _read_only(np.zeros(num_envs, bool)),
        }
        texts = dict.fromkeys(TEXTS, no_text)
        self._blank = self._masked({**texts, **numbers, **nested} if text else numbers | flat)
        self._nested = nested if text else {}

    def _masked(self, values: Mapping[str, Any]) -> Info:
        return {**values, **{f"_{name}": self._everywhere for name in values}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make what is shared read-only in a copy too."""
        self.__dict__.update(state)
        inner = [array for group in self._nested.values() for array in group.values()]
        for array in (*self._blank.values(), *inner):
            if isinstance(array, np.ndarray):
                _read_only(array)

    def blank(self) -> Info:
        """The info of a step with which no utterance ended in any row."""
        return {**self._blank, **{name: group.copy() for name, group in self._nested.items()}}

    def of_turns(
        self, rows: np.ndarray, texts: np.ndarray, turns: np.ndarray, outcome: BatchOutcome
    ) -> Info:
        """The info of a step with which an utterance ended in `rows` (k,)."""
        info = self.blank()
        info["turn"] = self._scatter("turn", rows, turns)
        if self.text:
            info["utterance"] = self._scatter("utterance", rows, texts)
            heard = rows[outcome.heard_rows]
            info["reply"] = self._scatter("reply", heard, outcome.heard_texts)
        for name, values in outcome.components.items():
            self._put(info, "reward_components", name, rows, values)
        return info

    def end(
        self,
        info: Info,
        rows: np.ndarray,
        success: np.ndarray,
        texts: np.ndarray,
        metrics: Sequence[Mapping[str, float]],
    ) -> None:
        """Note in the info of a step that the dialogues of `rows` are over with it."""
        info["is_success"] = self._scatter("is_success", rows, success)
        if self.text:
            info["transcript"] = self._scatter("transcript", rows, texts)
        for name in self._metric_names:
            self._put(info, "metrics", name, rows, [measured[name] for measured in metrics])

    def _put(self, info: Info, group: str, name: str, rows: np.ndarray, values: Any) -> None:
        """Put a component or metric of some rows into an info."""
        target, key = (info[group], name) if self.text else (info, flat_key(group, name))
        target[key] = np.zeros(self.num_envs)
        target[key][rows] = values
        target[f"_{key}"] = self._everywhere

    def _scatter(self, name: str, rows: np.ndarray, values: Any) -> np.ndarray:
        array: np.ndarray = self._blank[name].copy()
        array[rows] = values
        return array

    def split(self, info: Info, over: np.ndarray) -> tuple[Info, Info]:
        """The info after a reset of the rows that are over (N,) bool, and their final info.

        Both are of this structure; the masks of the final info are those of the rows.
        """
        going, final = self.blank(), restricted(info, over)
        for name, value in info.items():
            if isinstance(value, dict):
                going[name] = {n: _without(v, over, n) for n, v in value.items()}
            else:
                going[name] = _without(value, over, name)
        return going, final


def restricted(info: Info, rows: np.ndarray) -> Info:
    """The info as it is of the `rows` (N,) bool alone: the same values under other masks."""
    chosen = rows.copy()
    chosen_info: Info = {}
    for name, value in info.items():
        masked = restricted(value, rows) if isinstance(value, dict) else value
        chosen_info[name] = chosen if name.startswith("_") else masked
    return chosen_info


def row_info(info: Info, row: int) -> Info:
    """One row of a vector env's info, as a single env gives it."""
    own: Info = {}
    for name, values in info.items():
        if name.startswith("_") or not info.get(f"_{name}", [True] * (row + 1))[row]:
            continue
        if isinstance(values, dict):
            own[name] = row_info(values, row)
        else:
            value = values[row]
            own[name] = value.item() if isinstance(value, np.generic) else value
    return own


def _without(values: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    """The values with those of the rows made empty; masks and read-only arrays stay."""
    if not values.flags.writeable:
        return values
    left = values.copy()
    left[rows] = "" if values.dtype == object else 0
    return left


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
