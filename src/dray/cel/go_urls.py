"""URLs as Go's net/url reads and writes them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dray.api.quoting import quote

_ALWAYS_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_PLAIN_IN: Final = {
    "path": _ALWAYS_PLAIN | frozenset(b"$&+,/:;=@"),
    "user": _ALWAYS_PLAIN | frozenset(b"$&+,;="),
    "host": _ALWAYS_PLAIN | frozenset(b"!$&'()*+,;=:[]<>\""),
    "query": _ALWAYS_PLAIN,
    "fragment": _ALWAYS_PLAIN | frozenset(b"$&+,/:;=?@!()*"),
}
_VALID_ESCAPED: Final = {mode: plain | frozenset(b"!$&'()*+,;=:@[]%") for mode, plain in _PLAIN_IN.items()}
_IN_HOST: Final = _PLAIN_IN["host"] | frozenset(b"%") | frozenset(range(0x80, 0x100))
_SCHEME: Final = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*")
_PORT: Final = re.compile(rb":[0-9]*|")
_USERINFO: Final = re.compile(rb"[a-zA-Z0-9\-._:~!$&'()*+,;=%@]*")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_HEX_PAIR: Final = re.compile(rb"[0-9a-fA-F]{2}")


class InvalidURL(ValueError):
    """The message is Go's: formats show it to users."""


class ParsedURL(NamedTuple):
    """The parts of a URL; bytes, because escapes may stand for anything."""

    scheme: bytes = b""
    opaque: bytes = b""
    user: bytes | None = None
    """Escaped again, with its password."""
    host: bytes = b""
    path: bytes = b""
    raw_path: bytes = b""
    query: bytes = b""
    force_query: bool = False
    fragment: bytes = b""
    raw_fragment: bytes = b""
    omit_host: bool = False

    @property
    def escaped_path(self) -> bytes:
        if self.raw_path and _is_valid_escaped(self.raw_path, "path"):
            return self.raw_path
        return b"*" if self.path == b"*" else _escape(self.path, "path")

    def __str__(self) -> str:
        text = self.scheme + b":" if self.scheme else b""
        if self.opaque:
            text += self.opaque
        else:
            text += self._authority() + self._joined_path(text)
        if self.force_query or self.query:
            text += b"?" + self.query
        if self.fragment:
            raw_is_valid = self.raw_fragment and _is_valid_escaped(self.raw_fragment, "fragment")
            text += b"#" + (self.raw_fragment if raw_is_valid else _escape(self.fragment, "fragment"))
        return text.decode(errors="replace")

    def _authority(self) -> bytes:
        if not self.scheme and not self.host and self.user is None:
            return b""
        if self.omit_host and not self.host and self.user is None:
            return b""
        text = b"//" if self.host or self.path or self.user is not None else b""
        if self.user is not None:
            text += self.user + b"@"
        return text + _escape(self.host, "host")

    def _joined_path(self, before: bytes) -> bytes:
        path = self.escaped_path
        if path and not path.startswith(b"/") and self.host:
            return b"/" + path
        if not before and not self._authority() and b":" in path.split(b"/", 1)[0]:
            return b"./" + path
        return path


def parse_request_uri(text: str) -> ParsedURL:
    """An absolute URL or path, as in an HTTP request: a fragment is part of the path or query."""
    return _parse(text.encode(), via_request=True)


def parse_url(text: str) -> ParsedURL:
    data, _, fragment = text.encode().partition(b"#")
    parsed = _parse(data, via_request=False)
    if not fragment:
        return parsed
    plain = _unescape(fragment, "fragment")
    raw = b"" if _escape(plain, "fragment") == fragment else fragment
    return parsed._replace(fragment=plain, raw_fragment=raw)


def _parse(data: bytes, *, via_request: bool) -> ParsedURL:
    if _CONTROL.search(data):
        raise InvalidURL("net/url: invalid control character in URL")
    if not data and via_request:
        raise InvalidURL("empty url")
    if data == b"*":
        return ParsedURL(path=b"*")
    scheme, rest = _split_scheme(data)
    force_query = rest.endswith(b"?") and rest.count(b"?") == 1
    rest, _, query = rest.partition(b"?")
    url = ParsedURL(scheme=scheme, query=query, force_query=force_query)
    if not rest.startswith(b"/"):
        if scheme:
            return url._replace(opaque=rest)
        if via_request:
            raise InvalidURL("invalid URI for request")
        if b":" in rest.split(b"/", 1)[0]:
            raise InvalidURL("first path segment in URL cannot contain colon")
    if rest.startswith(b"//") and (scheme or (not via_request and not rest.startswith(b"///"))):
        authority, slash, tail = rest[2:].partition(b"/")
        user, host = _parse_authority(authority)
        url, rest = url._replace(user=user, host=host), slash + tail
    elif scheme and rest.startswith(b"/"):
        url = url._replace(omit_host=True)
    path = _unescape(rest, "path")
    return url._replace(path=path, raw_path=b"" if _escape(path, "path") == rest else rest)


def _split_scheme(data: bytes) -> tuple[bytes, bytes]:
    if data.startswith(b":"):
        raise InvalidURL("missing protocol scheme")
    scheme = _SCHEME.match(data)
    if scheme is None or data[scheme.end() : scheme.end() + 1] != b":":
        return b"", data
    return scheme[0].lower(), data[scheme.end() + 1 :]


def _parse_authority(authority: bytes) -> tuple[bytes | None, bytes]:
    userinfo, at, host = authority.rpartition(b"@")
    parsed_host = _parse_host(host)
    if not at:
        return None, parsed_host
    if not _USERINFO.fullmatch(userinfo):
        raise InvalidURL("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(b":")
    user = _escape(_unescape(name, "user"), "user")
    if colon:
        user += b":" + _escape(_unescape(password, "user"), "user")
    return user, parsed_host


def _parse_host(host: bytes) -> bytes:
    if host.startswith(b"["):
        end = host.rfind(b"]")
        if end < 0:
            raise InvalidURL("missing ']' in host")
        if not _PORT.fullmatch(host[end + 1 :]):
            raise InvalidURL(f"invalid port {_quoted(host[end + 1 :])} after host")
        zone = host[:end].find(b"%25")
        if zone >= 0:
            return _unescape(host[:zone], "host") + _unescape(host[zone:end], "zone") + _unescape(host[end:], "host")
    elif b":" in host:
        name, _, port = host.rpartition(b":")
        if not _PORT.fullmatch(b":" + port):
            raise InvalidURL(f"invalid port {_quoted(b':' + port)} after host")
        if b":" in name:
            raise InvalidURL("too many colons in host")
    return _unescape(host, "host")


def _unescape(data: bytes, mode: str) -> bytes:
    if mode in ("host", "zone") and not _IN_HOST.issuperset(data):
        wrong = next(byte for byte in data if byte not in _IN_HOST)
        raise InvalidURL(f"invalid character {_quoted(bytes((wrong,)))} in host name")
    if mode == "query":
        data = data.replace(b"+", b" ")
    if b"%" not in data:
        return data
    first, *rest = data.split(b"%")
    pieces = [first]
    for part in rest:
        if not _HEX_PAIR.match(part):
            raise InvalidURL(f"invalid URL escape {_quoted(b'%' + part[:2])}")
        byte = int(part[:2], 16)
        plain_host = byte in _PLAIN_IN["host"]
        if (mode == "host" and byte < 0x80 and byte != 0x25) or (
            mode == "zone" and byte not in (0x25, 0x20) and not plain_host
        ):
            raise InvalidURL(f"invalid URL escape {_quoted(b'%' + part[:2])}")
        pieces.append(bytes((byte,)) + part[2:])
    return b"".join(pieces)


def _quoted(data: bytes) -> str:
    return quote(data.decode(errors="replace"))


def _escape(data: bytes, mode: str) -> bytes:
    plain = _PLAIN_IN[mode]
    if plain.issuperset(data):
        return data
    return b"".join(bytes((byte,)) if byte in plain else b"%%%02X" % byte for byte in data)


def _is_valid_escaped(data: bytes, mode: str) -> bool:
    return _VALID_ESCAPED[mode].issuperset(data)


def split_host_port(host: bytes) -> tuple[bytes, bytes]:
    name, port = host, b""
    colon = host.rfind(b":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        name, port = host[:colon], host[colon + 1 :]
    if name.startswith(b"[") and name.endswith(b"]"):
        name = name[1:-1]
    return name, port


def parse_query(query: bytes) -> list[tuple[bytes, bytes]]:
    """The pairs that can be read; broken ones are left out, as Go does."""
    pairs = []
    for part in query.split(b"&"):
        if not part or b";" in part:
            continue
        key, _, value = part.partition(b"=")
        try:
            pairs.append((_unescape(key, "query"), _unescape(value, "query")))
        except InvalidURL:
            continue
    return pairs
