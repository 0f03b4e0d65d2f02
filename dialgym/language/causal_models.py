"""Causal language models of `transformers`, with their tokenizers."""

from typing import Any

from dialgym.io.hub import model_folder, pretrained
from dialgym.optional import require

OTHER_HEADS = ("SequenceClassification", "TokenClassification", "QuestionAnswering", "MaskedLM")


def load_causal_model(source: str, what: str) -> tuple[Any, Any]:
    """The model and tokenizer of a folder, or of ``hf:NAME`` or ``hf:NAME@REVISION``.

    Args:
        source: as above.
        what: what it is for, for messages.

    Raises:
        ValueError: there is none, or it is no causal language model.
        ImportError: `transformers` is not installed.
    """
    require("transformers", "agents", f"language model {source!r}")
    folder = model_folder(source, what)
    try:
        check_architecture(source, pretrained("AutoConfig", folder))
        tokenizer = pretrained("AutoTokenizer", folder)
        model = pretrained("AutoModelForCausalLM", folder)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{what}: no model at {source!r}: expected a saved agent, or a causal language model "
            f"with its tokenizer. ({error})"
        ) from error
    return model.eval(), tokenizer


def window_of(config: Any, tokenizer: Any) -> int:
    """Tokens that a model reads, or its tokenizer makes."""
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length"):
        if isinstance(found := getattr(config, name, None), int):
            return found
    return int(tokenizer.model_max_length)


def check_architecture(source: str, config: Any) -> None:
    """Raise ValueError for a folder whose weights have another head than a language model's."""
    for name in config.architectures or []:
        if name.endswith(OTHER_HEADS):
            raise ValueError(f"{source!r} holds a {name}, which says nothing")
