"""Wires one control plane out of the components. The only place that knows them all."""
