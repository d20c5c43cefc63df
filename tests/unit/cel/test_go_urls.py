from __future__ import annotations

import pytest

from dray.cel.go_urls import InvalidURL, parse_query, parse_request_uri, parse_url, split_host_port


@pytest.mark.parametrize(
    ("text", "scheme", "host", "path"),
    [
        ("https://example.com:8443/a%20b/c?k=v#frag", "https", "example.com:8443", "/a%20b/c"),
        ("/path/only?x=1", "", "", "/path/only"),
        ("http://[::1]:80/", "http", "[::1]:80", "/"),
        ("ftp://user@host/x", "ftp", "host", "/x"),
        ("HTTP://Example.com", "http", "Example.com", ""),
        ("mailto:a@b", "mailto", "", ""),
    ],
)
def test_parts(text: str, scheme: str, host: str, path: str) -> None:
    parse_request_uri(text)
    url = parse_url(text)
    assert (url.scheme.decode(), url.host.decode(), url.escaped_path.decode()) == (scheme, host, path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "://x",
        "a b",
        "http://[::1",
        "http://a:b/",
        "http://a b/",
        "/%zz",
        "http://x/\x7f",
        "http://localhost:80:80/",
        "http://%41/",
        "http://us er@h/",
    ],
)
def test_these_are_no_urls(text: str) -> None:
    with pytest.raises(InvalidURL):
        parse_request_uri(text)


@pytest.mark.parametrize(
    "text",
    ["https://example.com/a%2Fb?x=1#f", "https://u:p@example.com/", "/a//b", "http://host?", "mailto:a@b", "file:/x"],
)
def test_a_url_is_put_together_again(text: str) -> None:
    assert str(parse_url(text)) == text


def test_host_and_port() -> None:
    assert split_host_port(b"[::1]:80") == (b"::1", b"80")
    assert split_host_port(b"example.com") == (b"example.com", b"")
    assert split_host_port(b"example.com:") == (b"example.com", b"")


def test_broken_pairs_of_a_query_are_left_out() -> None:
    assert parse_query(b"k=v&k=w&z=&a;b=1&%zz=2&x=a+b") == [(b"k", b"v"), (b"k", b"w"), (b"z", b""), (b"x", b"a b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://a:b/", 'invalid port ":b" after host'),
        ("http://a b/", 'invalid character " " in host name'),
        ("/%zz", 'invalid URL escape "%zz"'),
        ("/%4", 'invalid URL escape "%4"'),
        ("abc", "invalid URI for request"),
    ],
)
def test_messages_are_those_of_go(text: str, message: str) -> None:
    with pytest.raises(InvalidURL) as caught:
        parse_request_uri(text)
    assert str(caught.value) == message
