"""HTTP exchanges with a kube-apiserver, replayed against a server of ours, or against any other.

By default a fresh server is started in this process, over HTTPS. With DRAY_SERVER set (and DRAY_TOKEN, DRAY_CA) the
exchanges go to that address: it must be a cluster with only the default namespaces.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from tests.conformance.runner import Case, has_keys, iter_data
from tests.conformance.transcript_server import Server, running_server

_PLACEHOLDER = re.compile(r"<(?:uid|rv|continue|address|creationTimestamp|deletionTimestamp)>")
_SAVED = re.compile(r"\$\{(\w+)\}")
_OLD_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_AGE = re.compile(r"^\d+s$")
_PARSER_TEXTS = ("json parse error", "unable to parse requirement", "compilation failed")
_FREE_POD_FIELDS = {
    "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "dnsPolicy", "securityContext",
    "tolerations", "priority", "enableServiceLinks", "preemptionPolicy", "terminationGracePeriodSeconds",
}  # fmt: skip
"""Defaults of pods that have nothing to do with claims need not be there."""


is_mine = has_keys("request response")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, exchanges in iter_data(paths, is_mine):
        with running_server(os.environ) as server:
            session = Session(server)
            for number, exchange in enumerate(exchanges):
                if exchange.get("setup"):
                    session.set_up(exchange)
                else:
                    yield Case(f"{number} {exchange['name']}", partial(session.check, exchange))


class Session:
    """One run through the exchanges: values that a response shows can be named in later requests."""

    def __init__(self, server: Server) -> None:
        self._client = httpx.Client(base_url=server.url, verify=server.tls, timeout=30.0)
        self._token = server.token
        self._saved: dict[str, str] = {}

    def set_up(self, exchange: dict[str, Any]) -> None:
        answer = self.play(exchange)
        if answer.status_code != exchange["response"]["status"]:
            print(f"     set-up failed: {exchange['request']['path']}: {answer.text[:600]}")

    def check(self, exchange: dict[str, Any]) -> str | None:
        answer = self.play(exchange)
        expected = exchange["response"]
        problems = []
        if answer.status_code != expected["status"]:
            problems.append(f"status {answer.status_code}, expected {expected['status']}: {answer.text[:600]}")
            return problems[0]
        media = answer.headers.get("content-type", "")
        if "contentType" in expected and media != expected["contentType"]:
            problems.append(f"content type {media}, expected {expected['contentType']}")
        warnings = answer.headers.get_list("warning")
        if warnings != expected.get("warnings", []):
            problems.append(f"warnings {warnings}, expected {expected.get('warnings', [])}")
        if "events" in expected:
            events = [json.loads(line) for line in answer.text.splitlines()]
            problems += self._differences(_clean(events), expected["events"], "events")
        elif media.startswith("application/json") and answer.text:
            problems += self._compare_body(exchange, _clean(answer.json()), expected["body"])
        elif answer.text != expected["body"]:
            problems.append(f"body {answer.text!r}, expected {expected['body']!r}")
        return "; ".join(problems) or None

    def play(self, exchange: dict[str, Any]) -> httpx.Response:
        request = exchange["request"]
        headers = {"Authorization": f"Bearer {self._token}", **request.get("headers", {})}
        content = request.get("raw")
        if content is None and "body" in request:
            content = self._fill(json.dumps(request["body"], separators=(",", ":")))
        path = self._fill(request["path"], quoted=True)
        answer = self._client.request(request["method"], path, headers=headers, content=content)
        for name, field in exchange.get("save", {}).items():
            value: Any = answer.json()
            for step in field.split("."):
                value = value[step]
            self._saved[name] = value
        return answer

    def _fill(self, text: str, quoted: bool = False) -> str:
        return _SAVED.sub(lambda found: quote(self._saved[found[1]]) if quoted else self._saved[found[1]], text)

    def _compare_body(self, exchange: dict[str, Any], actual: Any, expected: Any) -> list[str]:
        if isinstance(expected, dict) and expected.get("kind") == "APIGroup":
            served = {entry["version"] for entry in actual["versions"]}
            expected = {**expected, "versions": [v for v in expected["versions"] if v["version"] in served]}
        if isinstance(expected, dict) and expected.get("kind") == "APIResourceList":
            served = {entry["name"] for entry in actual["resources"]}
            expected = {**expected, "resources": [entry for entry in expected["resources"] if entry["name"] in served]}
        return self._differences(actual, expected, "")

    def _differences(self, actual: Any, expected: Any, path: str) -> list[str]:
        match expected:
            case dict():
                if not isinstance(actual, dict):
                    return [f"{path}: {actual!r}, expected an object"]
                found = []
                for key in sorted(expected.keys() | actual.keys()):
                    place = f"{path}.{key}"
                    if key not in actual:
                        if key not in _FREE_POD_FIELDS:
                            found.append(f"{place} is missing, expected {json.dumps(expected[key])[:200]}")
                    elif key not in expected:
                        found.append(f"{place} is {json.dumps(actual[key])[:200]}, expected nothing")
                    else:
                        found += self._differences(actual[key], expected[key], place)
                return found
            case list():
                if path.endswith(".causes"):
                    expected, actual = (sorted(causes, key=json.dumps) for causes in (expected, actual))
                if not isinstance(actual, list) or len(actual) != len(expected):
                    return [f"{path}: {json.dumps(actual)[:300]}, expected {json.dumps(expected)[:300]}"]
                pairs = enumerate(zip(actual, expected, strict=True))
                return [
                    text for at, (mine, theirs) in pairs for text in self._differences(mine, theirs, f"{path}[{at}]")
                ]
            case str():
                return [] if self._same_text(actual, expected, path) else [f"{path}: {actual!r}, expected {expected!r}"]
            case _:
                return [] if actual == expected else [f"{path}: {actual!r}, expected {expected!r}"]

    def _same_text(self, actual: Any, expected: str, path: str) -> bool:
        if not isinstance(actual, str):
            return False
        pattern = ".+".join(re.escape(part) for part in _PLACEHOLDER.split(self._fill(expected)))
        if re.fullmatch(pattern, actual, re.DOTALL):
            return True
        if _OLD_TIME.match(expected) and _OLD_TIME.match(actual):
            return True
        if "].cells[" in path and _AGE.match(expected) and _AGE.match(actual):
            return True
        if path.endswith(".name") and expected.startswith("gen-") and actual.startswith("gen-"):
            return True
        if any(text in expected and text in actual for text in _PARSER_TEXTS):
            return True
        return path.endswith("message") and _same_parts(actual, expected)


def _same_parts(actual: str, expected: str) -> bool:
    """Several causes in one text may come in any order."""
    return sorted(re.split(r"[\[\],]+ ?", actual)) == sorted(re.split(r"[\[\],]+ ?", expected))


def _clean(value: Any) -> Any:
    """What the recordings leave out."""
    match value:
        case dict():
            return {
                key: _clean(item)
                for key, item in value.items()
                if key != "managedFields" and not (key == "description" and "priority" in value)
            }
        case list():
            return [_clean(item) for item in value]
        case _:
            return value
