"""Architectures of `transformers` that our GPT has: names, order and layout of its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from agents.models.gpt import GPT
from agents.models.gpt_config import GPTConfig
from agents.models.rotary import BASE
from dialgym.optional import require


@dataclass(frozen=True)
class Architecture:
    """A GPT of `transformers`.

    Attributes:
        names: of modules outside of the blocks, by ours.
        block: of a block's modules, with its number and the module's name to be filled in.
        block_names: of modules in a block, by ours.
        transposed: weights of linear layers are (inputs, outputs).
        by_head: rows of queries, keys and values stand head by head, where ours are (3, nh, hs).
    """

    names: Mapping[str, str]
    block: str
    block_names: Mapping[str, str]
    transposed: bool
    by_head: bool

    def name(self, module: str) -> str:
        """Name there of one of our modules, such as `blocks.0.attn.qkv`."""
        if not module.startswith("blocks."):
            return self.names[module]
        _, place, inside = module.split(".", 2)
        return self.block.format(place, self.block_names[inside])

    def rows(self, module: str, weight: Tensor, n_head: int) -> Tensor:
        """The rows (outputs, ...) of a module in the architecture's order."""
        if not (self.by_head and module.endswith("attn.qkv")):
            return weight
        return weight.unflatten(0, (3, n_head, -1)).transpose(0, 1).flatten(0, 2)

    def layout(self, module: str, weight: Tensor) -> Tensor:
        """A weight of one of our modules in the architecture's layout, or the way back."""
        linear = module.startswith("blocks.") and weight.ndim == 2
        return weight.T if linear and self.transposed else weight

    def state(self, gpt: GPT) -> dict[str, Tensor]:
        """The weights of a GPT by the architecture's names."""
        return dict(self._weights(gpt))

    def _weights(self, gpt: GPT) -> Iterator[tuple[str, Tensor]]:
        for name, weight in gpt.state_dict().items():
            module, _, part = name.rpartition(".")
            own = self.rows(module, weight, gpt.config.n_head)
            yield f"{self.name(module)}.{part}", self.layout(module, own).contiguous()


GPT2 = Architecture(
    names={"wte": "wte", "wpe": "wpe", "ln_f": "ln_f"},
    block="h.{}.{}",
    block_names={
        "ln_1": "ln_1",
        "attn.qkv": "attn.c_attn",
        "attn.proj": "attn.c_proj",
        "ln_2": "ln_2",
        "mlp.up": "mlp.c_fc",
        "mlp.proj": "mlp.c_proj",
    },
    transposed=True,
    by_head=False,
)
NEOX = Architecture(
    names={"wte": "embed_in", "ln_f": "final_layer_norm"},
    block="layers.{}.{}",
    block_names={
        "ln_1": "input_layernorm",
        "attn.qkv": "attention.query_key_value",
        "attn.proj": "attention.dense",
        "ln_2": "post_attention_layernorm",
        "mlp.up": "mlp.dense_h_to_4h",
        "mlp.proj": "mlp.dense_4h_to_h",
    },
    transposed=False,
    by_head=True,
)
ARCHITECTURES = {"learned": GPT2, "rotary": NEOX}
"""By the positions of our GPT."""


def model_config(config: GPTConfig) -> Any:
    """The configuration in `transformers` of our GPT."""
    transformers = require("transformers", "agents", "save_pretrained")
    if config.positions == "learned":
        return transformers.GPT2Config(
            n_layer=config.n_layer,
            n_head=config.n_head,
            n_embd=config.n_embd,
            n_positions=config.window,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    return transformers.GPTNeoXConfig(
        hidden_size=config.n_embd,
        intermediate_size=4 * config.n_embd,
        num_hidden_layers=config.n_layer,
        num_attention_heads=config.n_head,
        max_position_embeddings=config.window,
        hidden_act="gelu_new",
        use_parallel_residual=False,
        rope_parameters={"rope_type": "default", "rope_theta": BASE, "partial_rotary_factor": 1.0},
    )
