"""The text form of label selectors: `app=web,tier in (front,back),!legacy`.

A lexer of one regular expression and a parser of one function per rule. Where the text is wrong, the message is the
one that Kubernetes gives, so the parser asks its questions in Kubernetes' order.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dray.api.labels import BINARY_OPERATORS, InvalidSelector, Operator, Requirement, Selector, join_problems
from dray.api.names import check_qualified_name
from dray.api.quoting import quote
from dray.api.text_cache import cached_by_text

_TOKEN: Final = re.compile(r"[ \t\r\n]*(?P<symbol>==|!=|[=!(),<>])|[ \t\r\n]*(?P<word>[^=!(),<> \t\r\n\0]+)")
_OPERATORS: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


class _Token(NamedTuple):
    text: str
    is_word: bool = False


_END: Final = _Token("")


@cached_by_text
def parse_label_selector(text: str) -> Selector:
    """Read a selector; the empty text selects everything. Raises InvalidSelector."""
    return Selector(_Parser(text).parse())


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _scan(text)
        self._position = 0

    def _peek(self) -> _Token:
        return self._tokens[self._position]

    def _take(self) -> _Token:
        token = self._tokens[self._position]
        # The end is never passed: it can be looked at any number of times.
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek() == _END:
            return requirements
        while True:
            token = self._peek()
            if not _begins_requirement(token):
                raise InvalidSelector(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except InvalidSelector as error:
                raise InvalidSelector(f"unable to parse requirement: {error}") from error
            token = self._take()
            if token == _END:
                return requirements
            if token.text != ",":
                raise InvalidSelector(f"found '{token.text}', expected: ',' or 'end of string'")
            if not _begins_requirement(self._peek()):
                raise InvalidSelector(f"found '{self._peek().text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        token = self._take()
        negated = token.text == "!"
        if negated:
            token = self._take()
        if not token.is_word:
            raise InvalidSelector(f"found '{token.text}', expected: identifier")
        key = token.text
        if messages := check_qualified_name(key):
            raise InvalidSelector(f"<nil>: Invalid value: {quote(key)}: {'; '.join(messages)}")
        requirement = self._condition(key, negated)
        if problems := requirement.problems():
            raise InvalidSelector(join_problems(problems))
        return requirement

    def _condition(self, key: str, negated: bool) -> Requirement:
        if negated:
            return Requirement(key, Operator.DOES_NOT_EXIST)
        if self._peek() == _END or self._peek().text == ",":
            return Requirement(key, Operator.EXISTS)
        token = self._take()
        operator = _OPERATORS.get(token.text)
        if operator is None:
            raise InvalidSelector(f"found '{token.text}', expected: {', '.join(BINARY_OPERATORS)}")
        if operator in (Operator.IN, Operator.NOT_IN):
            return Requirement(key, operator, tuple(sorted(self._values())))
        return Requirement(key, operator, (self._exact_value(),))

    def _exact_value(self) -> str:
        if self._peek() == _END or self._peek().text == ",":
            return ""
        token = self._take()
        if not token.is_word:
            raise InvalidSelector(f"found '{token.text}', expected: identifier")
        return token.text

    def _values(self) -> set[str]:
        token = self._take()
        if token.text != "(":
            raise InvalidSelector(f"found '{token.text}' expected: '('")
        first = self._peek()
        if first.text == ")":
            self._take()
            return {""}
        if not first.is_word and first.text != ",":
            raise InvalidSelector(f"found '{first.text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            token = self._take()
            following = self._peek()
            if token.is_word:
                values.add(token.text)
                if following.text not in (",", ")"):
                    raise InvalidSelector(f"found '{following.text}', expected: ',' or ')'")
            elif token.text == ",":
                # A comma without a word on either side stands for an empty value.
                if not values or following.text in (",", ")"):
                    values.add("")
            else:
                raise InvalidSelector(f"found '{token.text}', expected: ',', or identifier")
            if following.text == ")":
                self._take()
                return values


def _begins_requirement(token: _Token) -> bool:
    return token.is_word or token.text == "!"


def _scan(text: str) -> list[_Token]:
    """A NUL ends the text, as it does in Kubernetes' lexer."""
    tokens = []
    position = 0
    while (found := _TOKEN.match(text, position)) is not None:
        position = found.end()
        word = found["word"]
        tokens.append(_Token(word, True) if word is not None else _Token(found["symbol"]))
    tokens.append(_END)
    return tokens
