"""Networks: backbones (tokens to hidden states), their KV cache, and the heads on top."""
