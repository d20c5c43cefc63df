"""Functions on URLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.cel.errors import EvaluationError
from dray.cel.go_urls import InvalidURL, parse_query, parse_request_uri, parse_url, split_host_port
from dray.cel.values import URL, Map, Value


def to_url(text: str) -> URL:
    try:
        parse_request_uri(text)
        url = parse_url(text)
    except InvalidURL as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None
    return URL(_text(url.scheme), _text(url.host), _text(url.path), _text(url.escaped_path), _text(url.query), str(url))


def is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except InvalidURL:
        return False
    return True


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def hostname(url: URL) -> str:
    return _text(split_host_port(url.host.encode())[0])


def port(url: URL) -> str:
    return _text(split_host_port(url.host.encode())[1])


def query(url: URL) -> Map:
    values: dict[str, list[Value]] = {}
    for key, value in parse_query(url.query.encode()):
        values.setdefault(_text(key), []).append(_text(value))
    return {key: found for key, found in values.items()}  # noqa: C416 - a dict of another type


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "string_to_url": to_url,
    "is_url_string": is_url,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": hostname,
    "url_get_port": port,
    "url_get_escaped_path": lambda url: url.escaped_path,
    "url_get_query": query,
}
