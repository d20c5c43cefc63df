"""Compares decoding, defaulting, conversion and encoding with recorded answers (conversion.json)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.codec import DecodeError, decode_object, encode_as, read_object
from dray.api.strict import decode_strict
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data

NOW = "2026-08-01T00:00:00Z"


is_mine = has_keys("vectors")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        for vector in data["vectors"]:
            yield Case(vector["name"], partial(check_vector, vector))


def check_vector(vector: dict[str, Any]) -> str | None:
    data = vector["rawInput"].encode() if "rawInput" in vector else json.dumps(vector["input"]).encode()
    return describe(_expected(vector), _ours(vector, data))


def _expected(vector: dict[str, Any]) -> dict[str, Any]:
    if "decodeError" in vector:
        # Kubernetes ends this message with the place in its own source code where the kinds are registered.
        return {"decodeError": re.sub(r' in scheme "[^"]*"$', "", vector["decodeError"])}
    return {
        "strictErrors": _in_order(vector, vector["strictErrors"]),
        "inputVersion": vector["inputVersion"],
        "kind": vector["kind"],
        **{f"outputs {version}": output for version, output in vector["outputs"].items()},
        **{f"roundTripVia {version}": result for version, result in vector["roundTripVia"].items()},
    }


def _ours(vector: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        kind = read_object(data, early=False).kind
        hub, strict = decode_strict(data, now=NOW, early=False)
    except DecodeError as error:
        return {"decodeError": error.message}
    return {
        "strictErrors": _in_order(vector, [str(error) for error in strict]),
        "inputVersion": kind.version,
        "kind": kind.kind,
        **{f"outputs {version}": _encoded(hub, version) for version in vector.get("outputs", ())},
        **{f"roundTripVia {version}": _round_trip(vector, hub, version) for version in vector.get("roundTripVia", ())},
    }


def _in_order(vector: dict[str, Any], errors: list[str]) -> list[str]:
    """Strict errors come in the order of the text; `input` was sorted after they were recorded, `rawInput` wasn't."""
    return errors if "rawInput" in vector else sorted(errors)


def _encoded(hub: Any, version: str) -> Any:
    return json.loads(encode_as(hub, version).replace(NOW.encode(), b"<now>"))


def _round_trip(vector: dict[str, Any], hub: Any, via: str) -> Any:
    own = vector["inputVersion"]
    there = encode_as(hub, via)
    back = _encoded(decode_object(there, now=NOW, early=False), own)
    return "lossless" if back == _encoded(hub, own) else back
