"""Decides which devices satisfy which claims. Pure: reads values, returns values; whoever asked commits."""
