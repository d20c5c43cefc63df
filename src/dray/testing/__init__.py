"""Tools for tests, part of the product: builders, a fake clock, drivers run without hardware."""
