"""Names: what Kubernetes and DRA accept as one, with Kubernetes' messages.

`check_*` return messages for a kind of text, `*_problems` what validation says about a field of the resource API. Both
are empty for a good name. Lengths are counted in bytes of UTF-8.
"""

from __future__ import annotations

import re
from typing import Final

from dray.api.problems import INVALID, REQUIRED, Problem, too_long
from dray.api.quoting import quote
from dray.api.text_cache import cached_by_text

Messages = tuple[str, ...]
Problems = tuple[Problem, ...]

MAX_LABEL_LENGTH: Final = 63
MAX_SUBDOMAIN_LENGTH: Final = 253
MAX_DRIVER_NAME_LENGTH: Final = 63
MAX_POOL_NAME_LENGTH: Final = 253
MAX_IDENTIFIER_LENGTH: Final = 32

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_QUALIFIED_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_QUALIFIED_PART})?"

_is_dns_label: Final = re.compile(_DNS_LABEL).fullmatch
_is_dns1035_label: Final = re.compile(_DNS1035_LABEL).fullmatch
_is_dns_subdomain: Final = re.compile(_DNS_SUBDOMAIN).fullmatch
_is_c_identifier: Final = re.compile(_C_IDENTIFIER).fullmatch
_is_qualified_part: Final = re.compile(_QUALIFIED_PART).fullmatch
_is_label_value: Final = re.compile(_LABEL_VALUE).fullmatch


def _explain(rule: str, pattern: str, *examples: str) -> str:
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{rule} (e.g. {shown}, regex used for validation is '{pattern}')"


_ENDS: Final = "must start and end with an alphanumeric character"
DNS_LABEL_MESSAGE: Final = _explain(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}",
    _DNS_LABEL,
    "my-name",
    "123-abc",
)
DNS1035_LABEL_MESSAGE: Final = _explain(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS1035_LABEL,
    "my-name",
    "abc-123",
)
DNS_SUBDOMAIN_MESSAGE: Final = _explain(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}",
    _DNS_SUBDOMAIN,
    "example.com",
)
C_IDENTIFIER_MESSAGE: Final = _explain(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
QUALIFIED_PART_MESSAGE: Final = _explain(
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _QUALIFIED_PART,
    "MyName",
    "my.name",
    "123-abc",
)
LABEL_VALUE_MESSAGE: Final = _explain(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " + _ENDS,
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


@cached_by_text
def check_dns_label(text: str) -> Messages:
    """An RFC 1123 label, such as the name of a namespace or a device."""
    messages = []
    if _length(text) > MAX_LABEL_LENGTH:
        messages.append(f"must be no more than {MAX_LABEL_LENGTH} characters")
    if not _is_dns_label(text):
        messages.append("must not contain dots" if _is_dns_subdomain(text) else DNS_LABEL_MESSAGE)
    return tuple(messages)


@cached_by_text
def check_dns1035_label(text: str) -> Messages:
    """An RFC 1035 label: like an RFC 1123 one, but it starts with a letter."""
    messages = []
    if _length(text) > MAX_LABEL_LENGTH:
        messages.append(f"must be no more than {MAX_LABEL_LENGTH} characters")
    if not _is_dns1035_label(text):
        messages.append(DNS1035_LABEL_MESSAGE)
    return tuple(messages)


@cached_by_text
def check_dns_subdomain(text: str) -> Messages:
    """An RFC 1123 subdomain, such as the name of most objects."""
    return tuple(_check_subdomain(text, unit="characters"))


def _check_subdomain(text: str, unit: str) -> list[str]:
    messages = []
    if _length(text) > MAX_SUBDOMAIN_LENGTH:
        messages.append(f"must be no more than {MAX_SUBDOMAIN_LENGTH} {unit}")
    if not _is_dns_subdomain(text):
        messages.append(DNS_SUBDOMAIN_MESSAGE)
    return messages


@cached_by_text
def check_c_identifier(text: str) -> Messages:
    return () if _is_c_identifier(text) else (C_IDENTIFIER_MESSAGE,)


@cached_by_text
def check_qualified_name(text: str) -> Messages:
    """A name with an optional DNS prefix, such as a label's key."""
    parts = text.split("/")
    if len(parts) > 2:
        rule = f"a valid label key {QUALIFIED_PART_MESSAGE}"
        return (f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    messages = []
    if len(parts) == 2:
        if not parts[0]:
            messages.append("prefix part must be non-empty")
        else:
            messages += [f"prefix part {message}" for message in _check_subdomain(parts[0], unit="bytes")]
    name = parts[-1]
    if not name:
        messages.append("name part must be non-empty")
    elif _length(name) > MAX_LABEL_LENGTH:
        messages.append(f"name part must be no more than {MAX_LABEL_LENGTH} bytes")
    if not _is_qualified_part(name):
        messages.append(f"name part {QUALIFIED_PART_MESSAGE}")
    return tuple(messages)


@cached_by_text
def check_label_value(text: str) -> Messages:
    messages = []
    if _length(text) > MAX_LABEL_LENGTH:
        messages.append(f"must be no more than {MAX_LABEL_LENGTH} bytes")
    if not _is_label_value(text):
        messages.append(LABEL_VALUE_MESSAGE)
    return tuple(messages)


def _invalid(text: str, messages: Messages) -> Problems:
    if not messages:
        return ()
    return tuple(Problem(INVALID, text, message) for message in messages)


def device_name_problems(text: str) -> Problems:
    return _invalid(text, check_dns_label(text))


def device_class_name_problems(text: str) -> Problems:
    return _invalid(text, check_dns_subdomain(text))


def node_name_problems(text: str) -> Problems:
    return _invalid(text, check_dns_subdomain(text))


@cached_by_text
def driver_name_problems(text: str) -> Problems:
    """A DNS subdomain of at most 63 bytes; upper case is tolerated."""
    if not text:
        return (Problem(REQUIRED, text, ""),)
    long = (too_long(text, MAX_DRIVER_NAME_LENGTH),) if _length(text) > MAX_DRIVER_NAME_LENGTH else ()
    return long + _invalid(text, check_dns_subdomain(text.lower()))


@cached_by_text
def pool_name_problems(text: str) -> Problems:
    """DNS subdomains separated by slashes."""
    if not text:
        return (Problem(REQUIRED, text, ""),)
    problems = [too_long(text, MAX_POOL_NAME_LENGTH)] if _length(text) > MAX_POOL_NAME_LENGTH else []
    for part in text.split("/"):
        problems += _invalid(part, check_dns_subdomain(part))
    return tuple(problems)


def identifier_problems(text: str) -> Problems:
    """A C identifier of at most 32 bytes: the last part of an attribute's name."""
    long = (too_long(text, MAX_IDENTIFIER_LENGTH),) if _length(text) > MAX_IDENTIFIER_LENGTH else ()
    return long + _invalid(text, check_c_identifier(text))


@cached_by_text
def qualified_name_problems(text: str) -> Problems:
    """The name of an attribute or capacity: an identifier, with an optional domain.

    More than one slash is accepted: Kubernetes overlooked that case, and keeps it so for stored objects.
    """
    match text.split("/"):
        case [name]:
            return identifier_problems(name)
        case [domain, name]:
            empty_domain = (Problem(INVALID, "", "the domain must not be empty"),)
            empty_name = (Problem(INVALID, "", "the name must not be empty"),)
            return (driver_name_problems(domain) if domain else empty_domain) + (
                identifier_problems(name) if name else empty_name
            )
        case _:
            return ()


@cached_by_text
def fully_qualified_name_problems(text: str) -> Problems:
    """Like a qualified name, but the domain isn't optional."""
    problems = qualified_name_problems(text)
    if "/" in text:
        return problems
    detail = "a fully qualified name must be a domain and a name separated by a slash"
    return (*problems, Problem(INVALID, text, detail, value_as_json=True))


_HEX: Final = re.compile("[0-9a-fA-F]{32}")
_HYPHENATED: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@cached_by_text
def uid_problems(text: str) -> Problems:
    """A UUID in lower case with hyphens."""
    if (reason := _uuid_error(text)) is not None:
        return (Problem(INVALID, text, f"error validating uid: {reason}"),)
    if _length(text) != 36 or text != text.lower():
        form = "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`"
        detail = f"uid must be in RFC 4122 normalized form, {form} with lowercase hexadecimal characters"
        return (Problem(INVALID, text, detail),)
    return ()


def _uuid_error(text: str) -> str | None:
    """Any of the four usual ways to write a UUID will do here."""
    body = text
    match _length(text):
        case 32:
            return None if _HEX.fullmatch(text) else "invalid UUID format"
        case 36:
            pass
        case 38:
            if not (text[0] == "{" and text[-1] == "}"):
                return "invalid bracketed UUID format"
            body = text[1:-1]
        case 45:
            if text[:9].lower() != "urn:uuid:":
                return f"invalid urn prefix: {quote(text[:9])}"
            body = text[9:]
        case length:
            return f"invalid UUID length: {length}"
    return None if _HYPHENATED.fullmatch(body) else "invalid UUID format"


@cached_by_text
def is_extended_resource_name(text: str) -> bool:
    """Whether containers may ask for this as a resource of their node, such as `example.com/gpu`."""
    if "/" not in text or "kubernetes.io/" in text or text.startswith("requests."):
        return False
    return not check_qualified_name(f"requests.{text}")


def truncate_key(text: str, limit: int) -> str:
    """A map key as field paths show it: at most `limit` bytes (but 16 in any case), the middle left out."""
    data = text.encode(errors="surrogatepass")
    limit = max(limit, 16)
    if len(data) <= limit:
        return text
    remaining = limit - 3
    head, tail = data[: (remaining + 1) // 2], data[len(data) - remaining // 2 :]
    return f"{head.decode(errors='replace')}...{tail.decode(errors='replace')}"
