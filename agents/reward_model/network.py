"""A sequence classifier of `transformers` with one output, from a checkpoint or from scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from agents.reward_model.reward_model_config import RewardModelConfig
from dialgym.io.hub import model_folder, pretrained
from dialgym.language.tokenizers import BPETokenizer
from dialgym.optional import require
from dialgym.rewards.models import encoded

LONGEST = 256  # tokens, unless more are asked for
PAD, CLS, SEP = "<pad>", "<cls>", "<sep>"


@dataclass
class Network:
    """A reward model and its tokenizer.

    Attributes:
        model: `AutoModelForSequenceClassification` with one output.
        tokenizer: makes pairs of a context and a reply, cut to `max_length` from the left.
        max_length: tokens that are read.
    """

    model: Any
    tokenizer: Any
    max_length: int

    @property
    def head(self) -> nn.Linear:
        """The layer that gives the reward."""
        layers = [m for m in self.model.modules() if isinstance(m, nn.Linear)]
        return next(layer for layer in reversed(layers) if layer.out_features == 1)

    def encode(self, contexts: Sequence[str], replies: Sequence[str]) -> list[dict[str, list[int]]]:
        """The tokens of pairs, without padding; see `dialgym.rewards.models.encoded`."""
        return encoded(self.tokenizer, contexts, replies, most=self.max_length)

    def batch(self, encoded: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
        """Inputs (n, T) of pairs, padded at the right."""
        longest = max(len(pair["input_ids"]) for pair in encoded)
        padding = {"input_ids": self.tokenizer.pad_token_id}
        return {
            name: torch.tensor(
                [p[name] + [padding.get(name, 0)] * (longest - len(p[name])) for p in encoded],
                device=self.model.device,
            )
            for name in encoded[0]
        }

    def rewards(self, encoded: Sequence[dict[str, list[int]]]) -> Tensor:
        """(n,) float32."""
        logits: Tensor = self.model(**self.batch(encoded)).logits
        return logits[:, 0].float()


def make_network(
    base: str | None, tokenizer: str, settings: RewardModelConfig, seed: int
) -> Network:
    """A network with a new head, or new altogether; PyTorch's generator is left as it was.

    Args:
        base: any model of `transformers` that can classify: a folder, ``hf:NAME`` or
            ``hf:NAME@REVISION``; None for a small encoder from scratch.
        tokenizer: of one from scratch: "bpe" (built in), "bpe:PATH", or "hf:NAME" as of
            `dialgym.language.tokenizers.make_tokenizer`.
        settings: sizes and the longest input.
        seed: of the new weights.

    Raises:
        ValueError: there is no such model or tokenizer, they do not belong together, or the longest
            input is longer than what the model reads.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if base is not None:
            return _from_checkpoint(base, settings)
        return _from_scratch(tokenizer, settings)


def _from_scratch(name: str, settings: RewardModelConfig) -> Network:
    transformers = require("transformers", "agents", "a reward model")
    tokenizer = _tokenizer(name)
    length = settings.max_length or LONGEST
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=4 * settings.width,
        max_position_embeddings=length,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=1,
        problem_type="regression",
    )
    return _network(transformers.BertForSequenceClassification(config), tokenizer, length)


def _tokenizer(name: str) -> Any:
    transformers = require("transformers", "agents", "a reward model")
    if name.startswith("hf:"):
        return _separated(_load("AutoTokenizer", name, weights=False))
    if name != "bpe" and not name.startswith("bpe:"):
        raise ValueError(
            f"reward model: tokenizer must be 'bpe', 'bpe:PATH' or 'hf:NAME', got {name!r}"
        )
    tokenizers = require("tokenizers", "rewards", "a reward model's tokenizer")
    bpe = tokenizers.Tokenizer.from_file(BPETokenizer(name.partition(":")[2] or None).path)
    bpe.add_special_tokens([PAD, CLS, SEP])
    bpe.post_processor = _template(bpe, f"{CLS} $A {SEP}", f"$B:1 {SEP}:1", (CLS, SEP))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, unk_token="<unk>", pad_token=PAD, cls_token=CLS, sep_token=SEP
    )


def _template(bpe: Any, single: str, more: str, specials: Sequence[str]) -> Any:
    tokenizers = require("tokenizers", "rewards", "a reward model's tokenizer")
    return tokenizers.processors.TemplateProcessing(
        single=single,
        pair=f"{single} {more}",
        special_tokens=[(name, bpe.token_to_id(name)) for name in specials],
    )


def _from_checkpoint(base: str, settings: RewardModelConfig) -> Network:
    tokenizer = _load("AutoTokenizer", base)
    model = _load(
        "AutoModelForSequenceClassification",
        base,
        num_labels=1,
        problem_type="regression",
        ignore_mismatched_sizes=True,
        dtype=torch.float32,
    )
    rows = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise ValueError(
            f"reward model: expected the tokenizer of the model at {base!r}, got one with "
            f"{len(tokenizer)} tokens for a model that knows {rows}; save the two together"
        )
    tokenizer = _separated(tokenizer)
    model.config.pad_token_id = tokenizer.pad_token_id
    window = min(
        tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", LONGEST)
    )
    if (settings.max_length or 0) > window:
        raise ValueError(
            f"reward model: max_length must be at most {window}, what {base!r} reads, got "
            f"{settings.max_length}"
        )
    return _network(model, tokenizer, settings.max_length or min(LONGEST, window))


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the progress bars of `transformers` within the block."""
    logging = require("transformers.utils.logging", "agents", "a reward model")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _load(kind: str, source: str, weights: bool = True, **more: Any) -> Any:
    require("transformers", "agents", f"model {source!r}")
    folder = model_folder(source, "reward model", weights)
    try:
        return pretrained(kind, folder, **more)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"reward model: nothing to begin with at {source!r}: expected a model of transformers "
            f"that can classify, with its tokenizer. ({error})"
        ) from error


def _separated(tokenizer: Any) -> Any:
    """The tokenizer with a padding token, and something between a context and a reply."""
    end = tokenizer.eos_token or tokenizer.sep_token
    if tokenizer.pad_token is None:
        if end is None:
            raise ValueError(
                "reward model: the tokenizer has no padding token and no end of text to pad with; "
                "choose another model"
            )
        tokenizer.pad_token = end
    alone = [tokenizer(text).input_ids for text in ("a", "b")]
    if tokenizer("a", "b").input_ids == [*alone[0], *alone[1]] and end is not None:
        core = tokenizer.backend_tokenizer
        core.post_processor = _template(core, "$A", f"{end} $B", (end,))
    return tokenizer


def _network(model: Any, tokenizer: Any, length: int) -> Network:
    tokenizer.truncation_side, tokenizer.padding_side = "left", "right"
    tokenizer.model_max_length = length
    return Network(model, tokenizer, length)
