"""Files, archives, tables, caches and servers.

| module | content |
|---|---|
| `files`, `checksums`, `locks`, `cache` | atomic writing, damage, one writer at a time, caches |
| `archives`, `tables` | files in zips within bounds; rows of JSONL, CSV, Parquet |
| `dataset_card`, `html_tables` | files that a card names as data; tables on pages |
| `strict_reader`, `typed_json`, `json_leaves` | plain values, read strictly or by type hints |
| `hub`, `finite_weights` | the Hugging Face hub; checks of the weights of models |
| `model_settings`, `chat_client`, `tape` | language models behind a service, recorded answers |
| `objects` | objects by ``module:name`` |
| `http_server`, `sigterm` | servers and signals of the command line |
"""
