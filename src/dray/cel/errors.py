"""What can go wrong with an expression.

CelError
├── CompileError           the text is no valid expression of its environment
└── EvaluationError        this evaluation has no value
    └── CostLimitExceeded  ... because it was stopped at its cost limit
"""

from __future__ import annotations

from typing import Final, Literal

CompileErrorKind = Literal["invalid", "internal"]
"""`invalid`: Kubernetes calls it RuleInvalid. `internal`: found while building the program, InternalError there."""


_MARGIN: Final = 100
"""How much of a line is shown on each side of the error."""


class CelError(Exception):
    """Any error of a CEL expression."""


class CompileError(CelError):
    """The expression can't be compiled. Knows where: `position` is a code point offset into `text`."""

    def __init__(
        self, message: str, *, text: str = "", position: int | None = None, kind: CompileErrorKind = "invalid"
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.kind: CompileErrorKind = kind

    @property
    def line(self) -> int:
        """Line of the error, counted from 1."""
        return self.text.count("\n", 0, self.position or 0) + 1

    @property
    def column(self) -> int:
        """Column of the error, counted from 1."""
        position = self.position or 0
        return position - (self.text.rfind("\n", 0, position) + 1) + 1

    def __str__(self) -> str:
        if self.position is None:
            return self.message
        source = self.text.split("\n")[self.line - 1]
        before, after = source[: self.column - 1], source[self.column - 1 :]
        if len(before) > _MARGIN:
            before = "…" + before[-_MARGIN:]
        if len(after) > _MARGIN:
            after = after[:_MARGIN] + "…"
        # Tabs stay tabs, so that the caret stands under its column however wide they are drawn.
        indent = "".join("\t" if char == "\t" else " " for char in before)
        return f"{self.line}:{self.column}: {self.message}\n | {before}{after}\n | {indent}^"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.message, self.text, self.position, self.kind)


def _rebuild(message: str, text: str, position: int | None, kind: CompileErrorKind) -> CompileError:
    return CompileError(message, text=text, position=position, kind=kind)


class EvaluationError(CelError):
    """The evaluation ended without a value."""


class CostLimitExceeded(EvaluationError):
    """The evaluation was stopped because it cost more than its limit."""

    def __init__(self, message: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(message)
