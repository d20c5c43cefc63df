from __future__ import annotations

from dray.api.quoting import quote, quote_json
from dray.api.text_cache import MAX_LENGTH, cached_by_text


def test_an_answer_is_computed_once_per_short_text() -> None:
    asked = []

    @cached_by_text
    def answer(text: str) -> str:
        asked.append(text)
        return text.upper()

    long = "x" * (MAX_LENGTH + 1)
    assert [answer("a"), answer("a"), answer(long), answer(long)] == ["A", "A", long.upper(), long.upper()]
    assert asked == ["a", long, long]


def test_go_quotes_escape_what_does_not_print() -> None:
    assert quote('a"\\\n\x00é\u200b\U000e0001') == '"a\\"\\\\\\n\\x00é\\u200b\\U000e0001"'


def test_json_quotes_are_safe_for_html() -> None:
    assert quote_json("<a>&\x00é\u2028") == '"\\u003ca\\u003e\\u0026\\u0000é\\u2028"'
