"""TRL's door: dialogues as the rollouts of its ``GRPOTrainer``.

The trainer gives a rollout function nothing but prompts, each as often as its group has members. So
the seed of a dialogue stands in the first message of its prompt, and a group starts alike. Tokens
are only ever appended: what the model has sampled is what is trained on.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from dialgym.bridges.rows import check_same, rows_of, seed_of, with_seed
from dialgym.bridges.token_chats import TokenChat
from dialgym.optional import require
from dialgym.registry import Environment
from dialgym.views.chat_batch import ChatBatch

EXTRA, PURPOSE = "trl", "training by TRL"
MAKER = "dialgym.bridges.trl.prompts"
Rows = Sequence[Sequence[Any]]
Generate = Callable[[Any, Rows, int], tuple[Rows, Rows]]
"""Turns after prefixes, of at most so many ids, by a trainer's model; their log-probabilities."""


def prompts(id_or_task: Environment, count: int, seed: int = 0, **settings: Any) -> Any:
    """A ``datasets.Dataset`` of dialogues to begin, those of `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; give the same to `rollout_func`.
        count: rows.

    Returns:
        Columns of `dialgym.bridges.rows.rows_of`; ``prompt`` has the seed in its first message.

    Raises:
        ImportError: datasets is missing, which TRL brings.
        ValueError: there is no such id or setting.
    """
    rows = [with_seed(row) for row in rows_of(id_or_task, count, seed, **settings)]
    return require("datasets", EXTRA, PURPOSE).Dataset.from_list(rows)


def returns(returns: Sequence[float], **columns: Any) -> list[float]:
    """Sums of the dialogues' rewards: a reward function for the trainer."""
    return [*returns]


def rollout_func(
    id_or_task: Environment,
    max_new_tokens: int | None = None,
    generate: Generate | None = None,
    **settings: Any,
) -> Callable[[list[Any], Any], dict[str, list[Any]]]:
    """A rollout function for ``GRPOTrainer(rollout_func=...)``, with `prompts` as its data.

    All dialogues of a call are played in rounds. One that has as many ids as the trainer's
    ``max_completion_length`` ends there, with what it has earned.

    Args:
        id_or_task, settings: as of `dialgym.Chat`.
        max_new_tokens: of a turn; None for what is left of the completion.
        generate: samples the turns; None for `sampled`.

    Returns:
        A function that gives a row a prompt: ``prompt_ids``; ``completion_ids``, to the model's
        last; ``logprobs``, 0.0 where others speak; ``env_mask``, 1 where the model does. Reward
        functions get `TokenChat.outcome` besides. It raises a ValueError for a prompt that is not
        one of `prompts` with these settings.

    Raises:
        ValueError: there is no such id or setting.
    """
    ChatBatch(id_or_task, 1, **settings).close()

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        bounds = trainer.args.max_completion_length, max_new_tokens
        if bounds == (None, None):
            raise ValueError(
                "rollout_func: expected a bound on the ids of a turn, max_new_tokens, or of a "
                "completion, the trainer's max_completion_length; both are None."
            )
        batch = ChatBatch(id_or_task, len(prompts), **settings)
        openings = batch.reset([seed_of(prompt, MAKER) for prompt in prompts])
        for prompt, opening in zip(prompts, openings):
            check_same(prompt, opening, MAKER)
        tokenizer, template = trainer.processing_class, trainer.chat_template_kwargs
        chats = [TokenChat(tokenizer, opening, *bounds, **template) for opening in openings]
        while rooms := {row: chat.room for row, chat in enumerate(chats) if chat.room}:
            prefixes = [chats[row].tokens.ids for row in rooms]
            turns = (generate or sampled)(trainer, prefixes, max(rooms.values()))
            texts = {row: chats[row].say(*turn) for row, *turn in zip(rooms, *turns, strict=True)}
            for row, reply in batch.step(texts).items():
                chats[row].hear(reply)
        columns = [_columns(chat) for chat in chats]
        return {name: [each[name] for each in columns] for name in columns[0]}

    return rollout


def _columns(chat: TokenChat) -> dict[str, Any]:
    done = chat.completion
    return {
        "prompt_ids": chat.tokens.ids[: chat.tokens.prompt_length],
        "completion_ids": done.ids,
        "logprobs": done.logprobs,
        "env_mask": [int(own) for own in done.is_learner],
        **chat.outcome(),
    }


def sampled(trainer: Any, prefixes: Rows, longest: int) -> tuple[Rows, Rows]:
    """Turns sampled by the trainer's model with its settings, and their log-probabilities.

    It holds the scores of a round: rows times `longest` times vocabulary.

    Raises:
        ImportError: TRL is missing.
        ValueError: the trainer samples by vLLM, which needs a `generate` of its own.
    """
    if trainer.use_vllm:
        raise ValueError(
            "rollout_func: the trainer has use_vllm=True, and vLLM is not asked here. Set "
            "use_vllm=False, or give rollout_func(generate=...)."
        )
    torch, trl = require("torch", EXTRA, PURPOSE), require("trl.models", EXTRA, PURPOSE)
    config, device = copy(trainer.generation_config), trainer.accelerator.device
    config.update(max_new_tokens=longest, return_dict_in_generate=True, output_scores=True)
    width = max(map(len, prefixes))
    padding = [[config.pad_token_id] * (width - len(ids)) for ids in prefixes]
    inputs = torch.tensor([[*pad, *ids] for pad, ids in zip(padding, prefixes)], device=device)
    seen = torch.tensor([[0] * len(p) + [1] * (width - len(p)) for p in padding], device=device)
    with (
        trl.unwrap_model_for_generation(
            trainer.model_wrapped, trainer.accelerator, generation_kwargs=trainer.generation_kwargs
        ) as model,
        torch.no_grad(),
    ):
        out = model.generate(inputs, attention_mask=seen, generation_config=config)
        scores = model.compute_transition_scores(out.sequences, out.scores, normalize_logits=True)
    turns = [_turn(row, trainer.eos_token_ids) for row in out.sequences[:, width:].tolist()]
    return turns, [row[: len(turn)] for row, turn in zip(scores.tolist(), turns)]


def _turn(ids: list[int], ends: Sequence[int]) -> list[int]:
    """The ids up to the first that ends a turn."""
    return ids[: next((at + 1 for at, token in enumerate(ids) if token in ends), len(ids))]
