"""Pretrained language models, of a folder or the hub, in the vocabulary of an environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from agents.models.architectures import GPT2
from agents.models.backbone import Backbone
from agents.models.gpt import GPT
from agents.models.gpt_config import GPTConfig
from agents.models.vocabulary import translate
from dialgym.io.hub import model_folder, pretrained
from dialgym.language.tokenizers import Tokenizer
from dialgym.optional import require


def load_backbone(source: str, tokenizer: Tokenizer, window: int) -> tuple[Backbone, Tensor | None]:
    """A pretrained model whose tokens are those of `tokenizer`, and its output head.

    Checkpoints of GPT-2's architecture go into our own `GPT`, which is faster; any other causal
    model goes through `HuggingFaceBackbone`. Weights are float32. The embeddings are made of the
    model's own as `agents.models.vocabulary.translate` says.

    Args:
        source: of a model and its tokenizer: a folder, ``hf:NAME`` or ``hf:NAME@REVISION``.
        tokenizer: what the ids of the environment mean; V = its `vocab_size`.
        window: longest sequence, in tokens.

    Returns:
        The backbone, and the weight (V, d) of its output head: None where the model ties it to
        the embeddings.

    Raises:
        ValueError: nothing is found at `source`, the window is too long for the model, or the
            model cannot be used.
        ImportError: `transformers` is not installed.
    """
    lm, own = _load(source)
    backbone = _convert(lm.base_model, window)
    check_head(source, lm)
    table, output = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
    mapping = translate(tokenizer, own, len(table))
    tied = output is table or output.data_ptr() == table.data_ptr()
    head = None if tied else mapping(output.detach())
    _replace_embedding(backbone, mapping(table.detach()))
    return backbone, head


def _load(source: str) -> tuple[Any, Any]:
    """The language model and its tokenizer."""
    require("transformers", "agents", f"pretrained model {source!r}")
    folder = model_folder(source, "pretrained model")
    try:
        more = {"dtype": torch.float32, "output_loading_info": True}
        lm, noted = pretrained("AutoModelForCausalLM", folder, **more)
        tokenizer = pretrained("AutoTokenizer", folder)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"pretrained model {source!r}: expected a causal language model and its tokenizer in "
            f"{str(folder)!r}. ({error})"
        ) from error
    if missing := sorted(noted["missing_keys"]):  # they would be drawn anew at every load
        raise ValueError(
            f"pretrained model {source!r}: expected all weights of {type(lm).__name__} in "
            f"{str(folder)!r}, but {len(missing)} are missing, such as {missing[0]}. Save the "
            "whole model there, or give another one."
        )
    return lm, tokenizer


@torch.no_grad()
def check_head(source: str, lm: Any) -> None:
    """Raises ValueError unless logits are hidden states times one matrix.

    A bias, a scale or a cap on the logits has no place in a `PolicyHead`, and leaving it out would
    silently give another model.
    """
    lm.eval()
    tokens = torch.arange(min(8, lm.get_input_embeddings().num_embeddings))[None]
    hidden = lm.base_model(input_ids=tokens, use_cache=False).last_hidden_state
    expected = lm(input_ids=tokens, use_cache=False).logits
    logits = hidden @ lm.get_output_embeddings().weight.T
    if not torch.allclose(logits, expected, atol=1e-3, rtol=1e-3):
        raise ValueError(
            f"pretrained model {source!r} ({lm.config.model_type}): expected an output head that "
            "is one matrix, but this one also shifts, scales or caps logits. Choose another model."
        )


def _convert(model: Any, window: int) -> Any:
    if model.config.model_type == "gpt2" and _is_plain_gpt2(model.config):
        return gpt_of(model, window)
    from agents.models.hugging_face import HuggingFaceBackbone

    return HuggingFaceBackbone(model, window)


def _is_plain_gpt2(config: Any) -> bool:
    """Return True if a GPT-2 configuration is what our own GPT computes."""
    return (
        config.activation_function in ("gelu_new", "gelu_pytorch_tanh")
        and config.scale_attn_weights
        and not config.scale_attn_by_inverse_layer_idx
        and not config.add_cross_attention
        and config.n_inner in (None, 4 * config.n_embd)
        and config.layer_norm_epsilon == 1e-5
    )


@torch.no_grad()
def gpt_of(model: Any, window: int) -> GPT:
    """Our GPT with the weights of a `GPT2Model`, its positions cut to `window`.

    Raises:
        ValueError: `window` is longer than the positions that the model has learned.
    """
    c = model.config
    if window > c.n_positions:
        raise ValueError(
            f"pretrained GPT-2: the window is {window} tokens, but the model has learned positions "
            f"for {c.n_positions} (n_positions). Shorten the window or choose another model."
        )
    gpt = GPT(GPTConfig(len(model.wte.weight), window, c.n_layer, c.n_head, c.n_embd))
    state = model.state_dict()
    for name, weight in gpt.state_dict().items():
        module, _, part = name.rpartition(".")
        theirs = GPT2.layout(module, state[f"{GPT2.name(module)}.{part}"])
        weight.copy_(theirs[: len(weight)])
    return gpt


def _replace_embedding(backbone: Any, weight: Tensor) -> None:
    """Give a backbone new token embeddings (V, d) in the same module, which may scale them."""
    module = backbone.wte if isinstance(backbone, GPT) else backbone.model.get_input_embeddings()
    module.weight = nn.Parameter(weight)
    module.num_embeddings, module.padding_idx = len(weight), None
    if isinstance(backbone, GPT):
        backbone.config = replace(backbone.config, vocab_size=len(weight))
    else:
        backbone.model.config.vocab_size = len(weight)
