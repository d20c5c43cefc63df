"""Why a text isn't what a field wants. Validation adds the path of the field."""

from __future__ import annotations

from typing import Final, NamedTuple

from dray.api.quoting import quote, quote_json

INVALID: Final = "FieldValueInvalid"
REQUIRED: Final = "FieldValueRequired"
TOO_LONG: Final = "FieldValueTooLong"

_TITLES: Final = {INVALID: "Invalid value", REQUIRED: "Required value", TOO_LONG: "Too long"}


class Problem(NamedTuple):
    """The type is the reason of the cause that a client gets; the value is shown for invalid ones only.

    Kubernetes shows values of its own string types as JSON, plain strings in Go's quotes.
    """

    type: str
    value: str
    detail: str
    value_as_json: bool = False

    def __str__(self) -> str:
        text = _TITLES[self.type]
        if self.type == INVALID:
            text += f": {quote_json(self.value) if self.value_as_json else quote(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text


def too_long(value: str, limit: int) -> Problem:
    return Problem(TOO_LONG, value, f"may not be more than {limit} bytes")
