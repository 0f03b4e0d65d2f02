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

The texts are left out where the setting ``text_info=False`` asks for that, as buffers that hold
numbers alone want it. With ``action_masks=True`` there is ``action_mask`` too, int8.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.rewards import Components
from dialgym.tasks import BatchOutcome, Task
from dialgym.tasks.batch import Exchange

Info = dict[str, Any]
TEXTS = ("utterance", "reply", "transcript")


class InfoForm:
    """The structure of the info of one dialogue.

    Args:
        task: the rules, whose `facts.components` names the parts of the learner's reward.
        learner: the party that the info is for.
        text: whether texts are in it.
    """

    def __init__(self, task: Task, learner: str, text: bool = True) -> None:
        self.text = text
        names = task.facts.components.get(learner, ())
        self._zeros: Components = dict.fromkeys(names, 0.0)
        self._blank: Info = {
            "utterance": "",
            "reply": "",
            "turn": 0,
            "reward_components": self._zeros,
            "is_success": False,
            "transcript": "",
        }
        if not text:
            self._blank = {name: v for name, v in self._blank.items() if name not in TEXTS}
        self._metrics = dict.fromkeys(task.facts.metrics, 0.0)
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
        parts = {**self._zeros, **exchange.components}
        more = {"metrics": self._metrics.copy()} if self._metrics else {}
        if not self.text:
            return {"turn": turn, "reward_components": parts, "is_success": False, **more}
        return {
            "utterance": utterance,
            "reply": exchange.heard[-1].text if exchange.heard else "",
            "turn": turn,
            "reward_components": parts,
            "is_success": False,
            "transcript": "",
            **more,
        }

    def end(
        self, info: Info, success: bool | None, transcript: str, metrics: Mapping[str, float]
    ) -> None:
        """Note in the info of a step that the dialogue is over with it."""
        info["is_success"] = bool(success)
        if self.text:
            info["transcript"] = transcript
        if self._metrics:
            info["metrics"] = {**self._metrics, **metrics}


class BatchInfoForm:
    """The structure of the info of N dialogues, in Gymnasium's form: arrays (N,) and masks.

    It is what `SyncVectorEnv` makes of the infos of N single envs. Arrays in which every row is
    empty are shared by all infos and read-only.

    Args:
        task, learner, text: as in `InfoForm`.
        num_envs: N.
    """

    def __init__(self, task: Task, learner: str, num_envs: int, text: bool = True) -> None:
        self.text = text
        self.num_envs = num_envs
        self._everywhere = _read_only(np.ones(num_envs, bool))
        no_text = _read_only(np.full(num_envs, "", object))
        zero = _read_only(np.zeros(num_envs))
        names = task.facts.components.get(learner, ())
        self._zeros = self._masked(dict.fromkeys(names, zero))
        blank: Info = {
            "utterance": no_text,
            "reply": no_text,
            "turn": _read_only(np.zeros(num_envs, np.int64)),
            "reward_components": self._zeros,
            "is_success": _read_only(np.zeros(num_envs, bool)),
            "transcript": no_text,
        }
        self._metrics = self._masked(dict.fromkeys(task.facts.metrics, zero))
        if self._metrics:
            blank["metrics"] = self._metrics
        self._blank = self._masked({n: v for n, v in blank.items() if text or n not in TEXTS})

    def _masked(self, values: Mapping[str, Any]) -> Info:
        return {**values, **{f"_{name}": self._everywhere for name in values}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What is shared is read-only in a copy too."""
        self.__dict__.update(state)
        for array in (*self._blank.values(), *self._zeros.values(), *self._metrics.values()):
            if isinstance(array, np.ndarray):
                _read_only(array)

    def blank(self) -> Info:
        """The info of a step with which no utterance ended in any row."""
        info = {**self._blank, "reward_components": self._zeros.copy()}
        if self._metrics:
            info["metrics"] = self._metrics.copy()
        return info

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
        parts = info["reward_components"]
        for name, values in outcome.components.items():
            parts[name] = np.zeros(self.num_envs)
            parts[name][rows] = values
            parts[f"_{name}"] = self._everywhere
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
        for name in info.get("metrics", {}):
            if not name.startswith("_"):
                values = info["metrics"][name] = np.zeros(self.num_envs)
                values[rows] = [found[name] for found in metrics]

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
    kept: Info = {}
    for name, value in info.items():
        masked = restricted(value, rows) if isinstance(value, dict) else value
        kept[name] = chosen if name.startswith("_") else masked
    return kept


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
