"""Attacks on reliability: bad inputs, kills, damaged files.

``python -m benchmarks.soak --minutes 20`` runs them for a budget of CPU time and prints a table of
tries and failures. An attack is a function of a budget, a generator and a folder that yields
tallies (`benchmarks.soak.budget`); each kind has a module of its own, and a row in
`benchmarks.soak.__main__`.
"""
