"""A model in the GGUF format as a folder of `transformers`."""

import numpy as np
import pytest

from benchmarks.recipes.from_gguf import convert

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

WIDTH, HEADS, WORDS = 32, 2, ["<|endoftext|>", "a", "b", "c", "ab"]


def write(path):
    """A random Llama of one layer."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_types([3, 1, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    rng = np.random.default_rng(0)
    shapes = {"token_embd": (len(WORDS), WIDTH), "output_norm": (WIDTH,)}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        shapes[f"blk.0.{name}"] = (WIDTH, WIDTH)
    for name in ("attn_norm", "ffn_norm"):
        shapes[f"blk.0.{name}"] = (WIDTH,)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, weight in weights.items():
        writer.add_tensor(f"{name}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def test_the_folder_has_its_weights_and_tokens(tmp_path):
    weights = write(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "lm")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "lm")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "lm")
    state = model.state_dict()
    np.testing.assert_array_equal(state["model.embed_tokens.weight"], weights["token_embd"])
    down = state["model.layers.0.mlp.down_proj.weight"]
    np.testing.assert_array_equal(down, weights["blk.0.ffn_down"])
    assert tokenizer("abc").input_ids == [4, 3]
