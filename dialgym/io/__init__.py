"""Files, archives, tables, caches and servers.

| module | content |
|---|---|
| `files`, `checksums`, `locks`, `cache` | atomic writing, damage, one writer at a time, caches |
| `archives`, `tables`, `bounds` | files in zips; rows of JSONL, CSV, Parquet; bounds of size |
| `strict_reader`, `typed_json`, `json_leaves` | plain values, read strictly or by type hints |
| `hub`, `finite_weights` | the Hugging Face hub; checks of the weights of models |
| `registry_file`, `objects` | envs_registry.yaml; objects by ``module:name`` |
| `http_server`, `sigterm`, `html_tables` | servers and signals of the command line; HTML |
"""
