"""Write a model in the GGUF format as a folder of `transformers`, in float32.

    python -m benchmarks.recipes.from_gguf MODEL.gguf FOLDER

It needs the package `gguf`. Quantised weights become the numbers that they stand for.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from dialgym.optional import require


def convert(file: str | Path, folder: str | Path) -> None:
    """Write the model and the tokenizer in `file` into `folder`.

    Raises:
        ImportError, FileNotFoundError: `gguf` is not installed, or there is no such file.
    """
    if find_spec("gguf") is None:
        raise ImportError("models in the GGUF format need the package gguf: pip install gguf")
    if not Path(file).is_file():
        raise FileNotFoundError(f"no model at {str(file)!r}: expected a file in the GGUF format")
    transformers = require("transformers", "agents", "models in the GGUF format")
    place = {"pretrained_model_name_or_path": Path(file).parent, "gguf_file": Path(file).name}
    read = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype="float32")
    config = read.config
    del config.quantization_config
    model = transformers.AutoModelForCausalLM.from_config(config).float()
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(**place).save_pretrained(folder)


def main() -> None:
    """Convert the file that the command line names."""
    parser = argparse.ArgumentParser("python -m benchmarks.recipes.from_gguf", description=__doc__)
    parser.add_argument("file", help="of the model")
    parser.add_argument("folder", help="to be written")
    arguments = parser.parse_args()
    try:
        convert(arguments.file, arguments.folder)
    except (ImportError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
