"""What a client sends and what it wants back: content types, and the forms of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec
import yaml

from dray.api.errors import BadRequest, NotAcceptable, UnsupportedMediaType
from dray.api.manifests import ManifestError, iter_documents
from dray.apiserver.protobuf import read_protobuf
from dray.apiserver.records import decode_json, encode_json
from dray.runtime.client import PatchType

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_ACCEPTED: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
_READ: Final = (JSON, YAML)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form of an answer: the object itself, or its Table, or only its metadata."""

    media: str = JSON
    shape: str = ""
    group: str = ""
    version: str = ""

    @property
    def is_table(self) -> bool:
        return self.shape == "Table"

    @property
    def is_partial(self) -> bool:
        return self.shape in ("PartialObjectMetadata", "PartialObjectMetadataList")


PLAIN: Final = Wanted()


def read_accept(header: str) -> Wanted:
    """The first form in an Accept header that we can give. Raises NotAcceptable."""
    if not header:
        return PLAIN
    for part in header.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        fields = dict(piece.partition("=")[::2] for piece in parameters)
        shape = fields.get("as", "")
        if media in ("*/*", "application/*"):
            media = JSON
        if media not in _READ:
            continue
        if not shape:
            return Wanted(media)
        if _knows(shape, fields):
            return Wanted(media, shape, fields.get("g", ""), fields.get("v", ""))
    raise NotAcceptable(f"only the following media types are accepted: {_ACCEPTED}")


def _knows(shape: str, fields: dict[str, str]) -> bool:
    match fields.get("g", ""), shape:
        case "meta.k8s.io", "Table" | "PartialObjectMetadata" | "PartialObjectMetadataList":
            return fields.get("v") in ("v1", "v1beta1")
        case "apidiscovery.k8s.io", "APIGroupDiscoveryList":
            return fields.get("v") in ("v2", "v2beta1")
        case _:
            return False


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def read_object_bytes(body: bytes, content_type: str, warnings: list[str] | None = None) -> bytes:
    """The JSON of a body. Raises UnsupportedMediaType, BadRequest."""
    match media_type(content_type):
        case "" | "application/json":
            return body
        case "application/yaml":
            return encode_json(parse_yaml(body))
        case "application/vnd.kubernetes.protobuf":
            return encode_json(read_protobuf(body, [] if warnings is None else warnings))
        case _:
            raise UnsupportedMediaType(
                f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
            )


def read_patch(body: bytes, content_type: str) -> tuple[PatchType, Any]:
    """Raises UnsupportedMediaType, BadRequest."""
    media = media_type(content_type)
    if media not in list(PatchType):
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    patch_type = PatchType(media)
    if patch_type is PatchType.APPLY:
        return patch_type, parse_yaml(body)
    try:
        return patch_type, decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from error


def parse_yaml(body: bytes) -> Any:
    """One YAML document; JSON is YAML, too, and much faster to read. Raises BadRequest."""
    if body.lstrip()[:1] == b"{":
        try:
            return decode_json(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # flow style that isn't JSON, or nothing at all: the YAML reader says what is wrong
    try:
        parts = list(iter_documents(body.decode()))
    except (UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"error decoding YAML: {error}") from error
    if len(parts) != 1:
        raise BadRequest(f"error decoding YAML: expected one document, found {len(parts)}")
    part = parts[0]
    if isinstance(part, ManifestError):
        raise BadRequest(f"error decoding YAML: line {part.line}: {part.message}")
    return part.value


def write_yaml(data: bytes) -> bytes:
    text: str = yaml.dump(decode_json(data), Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True)
    return text.encode()
