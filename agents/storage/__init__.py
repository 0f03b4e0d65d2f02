"""Files of models and runs: JSON settings and safetensors arrays, read without running anything."""
