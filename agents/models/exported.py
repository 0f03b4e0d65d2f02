"""A GPT policy as a language model of `transformers`: weights, tokenizer, chat template, adapters.

What was trained from a model of Hugging Face leaves in that model's own vocabulary, with the five
special tokens of dialgym at its end; what was trained from a preset has dialgym's ids, in which
they come first.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from agents.models.architectures import ARCHITECTURES, Architecture, model_config
from agents.models.gpt import GPT
from dialgym.errors import one_of
from dialgym.io.files import write_folder_atomically
from dialgym.language.tokenizers import (
    END,
    FIRST_TEXT,
    PAD,
    SPECIALS,
    TAGS,
    UNK,
    BPETokenizer,
    CharTokenizer,
    HFTokenizer,
    Tokenizer,
    WordTokenizer,
)
from dialgym.optional import require

ADAPTER = "adapter"
"""The folder of low-rank adapters, within that of the model beneath them."""
LORA = ("merged", "apart")
BESIDE = ("features", "return_embedding")
"""Parts by which a policy reads more than tokens."""
TEMPLATE = (
    "{%% for m in messages %%}{%% if m['content'] %%}"
    "{{ '%(own)s' if m['role'] == 'assistant' else '%(other)s' }}{{ m['content'] }}{{ '%(end)s' }}"
    "{%% endif %%}{%% endfor %%}{%% if add_generation_prompt %%}{{ '%(own)s' }}{%% endif %%}"
)
"""Form of a dialogue: as the environment writes it."""


def save_pretrained(policy: Any, folder: str | Path, lora: str = "merged") -> Path:
    """Write what a GPT policy says by as a causal language model of `transformers`.

    Its logits are those of the policy before masks; ids differ where the policy was trained from a
    model of Hugging Face, see `exported_ids`. Value heads have no place in it.

    Args:
        policy: of the class `agents.GPTPolicy`, or another that has a backbone and a policy head.
        folder: to be written; one of such a model is replaced.
        lora: ``merged`` adds low-rank adapters to the weights; ``apart`` writes them into the
            folder ``adapter`` in it, as `peft` does, and the model beneath without them.

    Returns:
        The folder.

    Raises:
        ValueError: it is no GPT policy, it reads more than tokens (features, a return to earn),
            its tokenizer is not known, or the folder holds other things.
    """
    one_of("lora", lora, LORA, "save_pretrained")
    space, path = _token_space(policy), Path(folder)
    _check_folder(path)
    order = _order(space.tokenizer)
    backbone = copy.deepcopy(policy.backbone).cpu()
    adapters = _take_adapters(backbone, merge=lora == "merged")
    renamed = _renamed(adapters, backbone)
    head, temperature = policy.policy_head.weight, policy.policy_head.temperature
    tied = head.data_ptr() == policy.backbone.embedding.data_ptr() and temperature == 1
    model = _language_model(backbone, None if tied else head.detach().cpu() / temperature, order)
    own = hf_tokenizer(space.tokenizer, getattr(space, "learner_tag", TAGS["system"]))
    own.model_max_length = int(space.shape[0])
    for config in (model.config, model.generation_config):
        config.eos_token_id = own.eos_token_id
        config.bos_token_id, config.pad_token_id = None, own.pad_token_id

    def write(target: Path) -> None:
        model.save_pretrained(target)
        own.save_pretrained(target)
        if adapters and lora == "apart":
            _write_adapters(target / ADAPTER, renamed, policy.config["lora"], model, path)

    write_folder_atomically(path, write)
    return path


def exported_ids(tokenizer: Tokenizer, ids: Tensor) -> Tensor:
    """The ids of an env's tokenizer in the model that `save_pretrained` writes."""
    places = torch.empty(tokenizer.vocab_size, dtype=torch.int64)
    places[_order(tokenizer)] = torch.arange(tokenizer.vocab_size)
    return places[ids.long()]


def _order(tokenizer: Tokenizer) -> Tensor:
    """(V,) the env's id of each row of the model that is written."""
    ids = torch.arange(tokenizer.vocab_size)
    if isinstance(tokenizer, HFTokenizer):
        return torch.cat([ids[FIRST_TEXT:], ids[:FIRST_TEXT]])
    return ids


def _token_space(policy: Any) -> Any:
    """The space of a policy's tokens; raises ValueError for one that no language model equals."""
    space = getattr(policy, "token_space", None)
    if getattr(space, "tokenizer", None) is None or not hasattr(policy, "policy_head"):
        raise ValueError(
            f"save_pretrained: expected a GPT policy that was made in an env of dialgym, whose "
            f"tokens are known; got {type(policy).__name__}."
        )
    beside = [part for part in BESIDE if getattr(policy, part, None) is not None]
    if beside:
        raise ValueError(
            f"save_pretrained: expected a policy whose speech follows from the tokens alone, got "
            f"{type(policy).__name__} with {', '.join(beside)}, which no language model of "
            "transformers reads. Save it as a model (save), or clone what it says (BC)."
        )
    return space


def _check_folder(path: Path) -> None:
    if path.exists() and not (path / "config.json").is_file() and any(path.iterdir()):
        raise ValueError(
            f"save_pretrained: {str(path)!r} holds other things than a model. Choose a new folder."
        )


# Weights


def _language_model(backbone: Any, head: Tensor | None, order: Tensor) -> Any:
    """The model of `transformers` with these weights, its rows in that order."""
    transformers = require("transformers", "agents", "save_pretrained")
    rows = backbone.embedding.detach()[order].contiguous()
    architecture = _architecture(backbone)
    if architecture is not None:
        config, state = model_config(backbone.config), architecture.state(backbone)
    else:
        config, state = copy.deepcopy(backbone.model.config), backbone.model.state_dict()
    config.vocab_size, config.tie_word_embeddings = len(rows), head is None
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    embedding = model.get_input_embeddings()
    padding = getattr(embedding, "padding_idx", None)
    if padding is not None and padding >= len(rows):
        embedding.padding_idx = None
    model.base_model.load_state_dict(state)
    with torch.no_grad():
        embedding.weight.copy_(rows)
        output = model.get_output_embeddings()
        if head is None:
            output.weight = embedding.weight
        else:
            output.weight.copy_(head[order])
    return model


def _architecture(backbone: Any) -> Architecture | None:
    """Architecture of our GPT; None for a model of `transformers`."""
    return ARCHITECTURES[backbone.config.positions] if isinstance(backbone, GPT) else None


# Adapters


def _take_adapters(backbone: nn.Module, merge: bool) -> dict[str, tuple[Tensor, Tensor]]:
    """Take low-rank adapters out of a backbone, in place; by module their A and B."""
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for name, module in list(backbone.named_modules()):
        if not hasattr(module, "base_layer") or not hasattr(module, "lora_A"):
            continue
        layer: Any = module
        found[name] = tuple(
            next(iter(part.values())).weight.detach().clone()
            for part in (layer.lora_A, layer.lora_B)
        )  # type: ignore[assignment]
        if merge:
            layer.merge()
        parent, _, last = name.rpartition(".")
        setattr(backbone.get_submodule(parent), last, layer.get_base_layer())
    return found


def _renamed(
    adapters: Mapping[str, tuple[Tensor, Tensor]], backbone: Any
) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B by the names of the model that is written, and in its order."""
    architecture = _architecture(backbone)
    if architecture is None:
        return {name.removeprefix("model."): pair for name, pair in adapters.items()}
    n_head = backbone.config.n_head
    return {
        architecture.name(name): (a, architecture.rows(name, b, n_head))
        for name, (a, b) in adapters.items()
    }


def _write_adapters(
    folder: Path,
    adapters: Mapping[str, tuple[Tensor, Tensor]],
    settings: Mapping[str, Any],
    model: Any,
    base: Path,
) -> None:
    from safetensors.torch import save_file

    peft = require("peft", "agents", "adapters")
    prefix = f"base_model.model.{model.base_model_prefix}"
    arrays = {
        f"{prefix}.{name}.lora_{part}.weight": weight.contiguous()
        for name, pair in adapters.items()
        for part, weight in zip("AB", pair)
    }
    folder.mkdir()
    save_file(arrays, folder / "adapter_model.safetensors", {"format": "pt"})
    peft.LoraConfig(
        r=settings.get("r", 8),
        lora_alpha=settings.get("alpha", 16),
        target_modules=sorted({name.rpartition(".")[2] for name in adapters}),
        fan_in_fan_out=model.config.model_type == "gpt2",
        task_type="CAUSAL_LM",
        base_model_name_or_path=str(base.resolve()),
    ).save_pretrained(folder)


# Tokenizers


def hf_tokenizer(tokenizer: Tokenizer, tag: int) -> Any:
    """A tokenizer of `transformers` for the model that is written, with its chat template.

    Args:
        tokenizer: the env's.
        tag: the learner's, which begins what a model says.
    """
    if isinstance(tokenizer, HFTokenizer):
        own = copy.deepcopy(tokenizer.own)
        specials = [f"<|dialgym_{name.strip('<>')}|>" for name in SPECIALS]
        if own.add_special_tokens({"additional_special_tokens": specials}) != len(specials):
            raise ValueError("save_pretrained: the tokenizer has dialgym's tokens already.")
        own.eos_token, own.pad_token = specials[END], specials[PAD]
    else:
        specials = list(SPECIALS)
        transformers = require("transformers", "agents", "save_pretrained")
        own = transformers.PreTrainedTokenizerFast(
            tokenizer_object=_core(tokenizer),
            eos_token=specials[END],
            pad_token=specials[PAD],
            unk_token=specials[UNK],
            additional_special_tokens=[specials[tag] for tag in TAGS.values()],
            clean_up_tokenization_spaces=False,
        )
    other = next(token for token in TAGS.values() if token != tag)
    parts = {"own": specials[tag], "other": specials[other], "end": specials[END]}
    own.chat_template = TEMPLATE % parts
    return own


def _core(tokenizer: Tokenizer) -> Any:
    """An object of the `tokenizers` library with the ids of one of our tokenizers."""
    tokenizers = require("tokenizers", "agents", "save_pretrained")
    if isinstance(tokenizer, BPETokenizer):
        return tokenizers.Tokenizer.from_str(_shifted(tokenizer.to_json()))
    if not isinstance(tokenizer, CharTokenizer | WordTokenizer):
        raise ValueError(
            f"save_pretrained: expected a tokenizer of characters, words, BPE or Hugging Face; got "
            f"{type(tokenizer).__name__}."
        )
    vocabulary = {name: number for number, name in enumerate(tokenizer.tokens)}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    if isinstance(tokenizer, CharTokenizer):
        pieces = tokenizers.Regex(r"[\s\S]")
        core.pre_tokenizer = tokenizers.pre_tokenizers.Split(pieces, "isolated")
        core.decoder = tokenizers.decoders.Fuse()
    else:
        core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    core.add_special_tokens(list(SPECIALS))
    return core


def _shifted(text: str) -> str:
    """A ``tokenizer.json`` with our special tokens before its own, whose unknown one is unused."""
    content = json.loads(text)
    own = content["model"]["vocab"]
    names = {("<unused>" if name == "<unk>" else name): i + FIRST_TEXT for name, i in own.items()}
    content["model"]["vocab"] = {name: i for i, name in enumerate(SPECIALS)} | names
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content["added_tokens"] = [
        {"id": i, "content": name, "special": True, **flags} for i, name in enumerate(SPECIALS)
    ]
    return json.dumps(content)
