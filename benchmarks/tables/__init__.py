"""Tables of docs/results: how each is made; those with committed rows are made again."""
