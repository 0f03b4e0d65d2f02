"""Speed of learners on a GPU: ``python -m benchmarks.gpu --out FOLDER``.

| module | what is in it |
|---|---|
| `plans` | what is run: models and sizes with a GPU, and a small version without |
| `measurements` | the measurements, each a few iterations and their rates |
| `report` | the rows as JSON and as a Markdown table |
"""
