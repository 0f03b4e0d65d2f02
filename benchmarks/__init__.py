"""Speed measurements and tables of the documentation; run from a checkout, not installed."""
