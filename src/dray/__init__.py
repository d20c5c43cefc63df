"""Dynamic Resource Allocation as one package; see docs/architecture.md for the layers."""

__version__ = "0.1.0"
