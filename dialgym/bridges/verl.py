"""verl's door: an agent loop that plays the dialogue of a row.

A configuration of agent loops (``rollout.agent.agent_loop_config_path``) names it::

    - name: dialgym
      _target_: dialgym.bridges.verl.DialogueLoop
      max_new_tokens: 64  # of a turn; without it, what is left of the response

Tokens are only ever appended: what the model has sampled is what is trained on.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from dialgym.bridges.rows import begin, chat_of, rows_of
from dialgym.bridges.token_chats import TokenChat
from dialgym.optional import require
from dialgym.registry import Environment

PURPOSE = "training by verl"
NAME = "dialgym"
"""Name of the agent loop in its configuration, for all tasks."""
MEASURED = ("success", "terminated", "truncated", "turns")
"""Measures that verl's validation is told beside the return."""
ABORTED = ("aborted", "abort")
"""Reasons for which a server stops where it gives up a rollout, as before an update of weights."""


def rows(id_or_task: Environment, count: int, seed: int = 0, **settings: Any) -> list[dict]:
    """Rows of training data: dialogues by their seeds, `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; settings must be plain values.
        count: rows.

    Returns:
        Those of `dialgym.bridges.rows.rows_of`, with the ``agent_name`` of the loop, the id as
        the ``data_source`` of verl's metrics, and the seed as the ``index`` of its traces.
    """
    made = rows_of(id_or_task, count, seed, **settings)
    for row in made:
        row.update(agent_name=NAME, data_source=row["env_id"], extra_info={"index": row["seed"]})
    return made


class DialogueLoop:
    """An agent loop in the form of verl's ``AgentLoopBase``, of which a worker makes one a row.

    Args:
        trainer_config, server_manager, tokenizer, data_config: as of ``AgentLoopBase``.
        max_new_tokens: ids of a turn; None for what is left of the response.
        others: further arguments of ``AgentLoopBase``, none of which are read.
    """

    def __init__(
        self,
        trainer_config: Any,
        server_manager: Any,
        tokenizer: Any,
        data_config: Any,
        max_new_tokens: int | None = None,
        **others: Any,
    ) -> None:
        self._rollout = trainer_config.config.actor_rollout_ref.rollout
        self._server, self._tokenizer = server_manager, tokenizer
        self._bounds = self._rollout.response_length, max_new_tokens
        self._template = data_config.config.get("apply_chat_template_kwargs") or {}

    async def run(self, sampling_params: Mapping[str, Any], **row: Any) -> Any:
        """Play a dialogue, up to a turn that the server aborts.

        Args:
            sampling_params: of the server.
            row: one of `rows`.

        Returns:
            verl's ``AgentLoopOutput``. The return is its ``reward_score``; in ``extra_fields`` are
            ``turn_scores``, the rewards by turn, their ``turn_components``, ``closing`` words, and
            `MEASURED` as ``reward_extra_info``.

        Raises:
            ImportError: verl is missing.
            ValueError: the row is none, or its prompt is longer than ``prompt_length``.
        """
        chat = chat_of(row)
        opening = await asyncio.to_thread(begin, chat, row)
        dialogue = TokenChat(self._tokenizer, opening, *self._bounds, **self._template)
        self._check_prompt(dialogue.tokens.prompt_length)
        request, seconds, outputs = uuid4().hex, {"generate_sequences": 0.0}, []
        while dialogue.room:
            since = time.perf_counter()
            limits = {**sampling_params, "max_tokens": dialogue.room}
            asked = {"prompt_ids": [*dialogue.tokens.ids], "sampling_params": limits}
            outputs.append(await self._server.generate(request_id=request, **asked))
            seconds["generate_sequences"] += time.perf_counter() - since
            turn = outputs[-1]
            if turn.stop_reason in ABORTED:
                break
            text = dialogue.say(turn.token_ids, turn.log_probs or None)
            dialogue.hear(await asyncio.to_thread(chat.step, text))
        return _output(dialogue, outputs, seconds, sampling_params.get("logprobs"))

    def _check_prompt(self, length: int) -> None:
        most = self._rollout.prompt_length
        if length > most:
            raise ValueError(
                f"prompt of {length} ids: expected at most rollout.prompt_length={most}. verl "
                "would cut its beginning, which tells the rules. Raise data.max_prompt_length."
            )


def _output(dialogue: TokenChat, outputs: list[Any], seconds: Mapping, logprobs: Any) -> Any:
    types = require("verl.experimental.agent_loop.agent_loop", None, PURPOSE)
    done, told = dialogue.completion, dialogue.outcome()
    steps = {**outputs[-1].extra_fields, **outputs[0].extra_fields}  # of the weights
    told_all = logprobs and all(turn.log_probs for turn in outputs if turn.token_ids)
    steps["max_global_steps"] = outputs[-1].extra_fields.get("max_global_steps")
    return types.AgentLoopOutput(
        prompt_ids=dialogue.tokens.ids[: dialogue.tokens.prompt_length],
        response_ids=done.ids,
        response_mask=[int(own) for own in done.is_learner],
        response_logprobs=done.logprobs if told_all else None,
        reward_score=told["returns"],
        num_turns=2 * told["turns"],
        metrics=seconds,
        extra_fields={
            **steps,
            "turn_scores": told["turn_rewards"],
            "tool_rewards": [],
            "turn_components": told["components"],
            "closing": told["closing"],
            "reward_extra_info": {name: float(told[name]) for name in MEASURED},
        },
    )
