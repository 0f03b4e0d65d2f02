"""The player of TRL's door: its rollout function, and a trainer whose model says the texts."""

from types import SimpleNamespace

from dialgym.bridges import trl
from dialgym.bridges.rows import rows_of, with_seed
from tests.doors.token_record import TOKENIZER, record_of_tokens, sampled

LENGTH = 10**6


def play(env_id, settings, seed, texts):
    """Play the texts as the only row of a rollout."""
    (row,) = rows_of(env_id, 1, seed=seed, **settings)
    turns = sampled(texts)

    def generate(trainer, prefixes, longest):
        ids = next(turns)
        return [ids], [[-1.0] * len(ids)]

    rollout = trl.rollout_func(env_id, generate=generate, **settings)
    args = SimpleNamespace(max_completion_length=LENGTH)
    trainer = SimpleNamespace(args=args, processing_class=TOKENIZER, chat_template_kwargs={})
    columns = rollout([with_seed(row)["prompt"]], trainer)
    (told,) = [dict(zip(columns, values)) for values in zip(*columns.values())]
    assert told["logprobs"] == [-1.0 if own else 0.0 for own in told["env_mask"]]
    masks = [0] * len(told["prompt_ids"]) + told["env_mask"]
    return record_of_tokens(row["prompt"], told["prompt_ids"] + told["completion_ids"], masks, told)
