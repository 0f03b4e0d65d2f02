"""Several processes that train one model: data parallel, FSDP, DeepSpeed; `accelerate` does it."""
