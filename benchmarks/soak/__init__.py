"""Attacks in kind on what may not break: bad inputs, kills, interrupts, damaged files, races.

``python -m benchmarks.soak --minutes 20`` runs them for a budget of CPU time and prints a table of
tries and failures. An attack is a function of a `Budget` and a generator that yields `Tally`s; each
kind has a module of its own, and a row in `benchmarks.soak.__main__`.
"""
