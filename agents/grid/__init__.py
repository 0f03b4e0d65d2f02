"""Grids of trainings: every algorithm in every task with every seed, tested on the way.

| module | what is in it |
|---|---|
| `cells` | `Cell`: one training; `Protocol`: how long it learns, when it is tested |
| `perform` | trains and tests one cell, from wherever a killed one stopped |
| `pools` | many cells at a time: processes of this machine, or a Ray cluster |
| `run` | `run_grid`: what is missing is done, with the time that is left |
| `results` | the figures of many cells, as files and as arrays |
| `tables`, `plots`, `calibration` | what is shown of them |
| `published` | the figures of others that they stand beside |
"""
