"""Conformance: our answers compared with recorded ones. `python -m tests.conformance KIND PATH...` runs any data."""
