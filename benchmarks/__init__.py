"""What measures speed and reproduces the tables of the docs; run from a checkout, not installed."""
