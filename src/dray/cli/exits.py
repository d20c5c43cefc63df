"""Exit statuses of commands."""

from __future__ import annotations

from typing import Final

PROBLEMS: Final = 1
"""Something that was checked isn't right."""

UNUSABLE: Final = 2
"""A file or an option can't be used."""

DOES_NOT_FIT: Final = 3
"""A claim gets no devices."""
