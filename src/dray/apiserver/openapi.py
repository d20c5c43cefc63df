"""OpenAPI of what the server serves: schemas from `schemas.json`, paths from the table of resources.

v3 has one document per group version, and an index that tells clients when one changed. v2 is all in one; old clients
ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from dray.api.meta import Json
from dray.apiserver.discovery import all_groups, group_versions, version_info
from dray.apiserver.records import encode_json
from dray.apiserver.resources import Row, Subresource, rows_of
from dray.apiserver.reviews import REVIEWS
from dray.apiserver.schemas import META, REFERENCE, definition_name, described_definitions

_JSON: Final = "application/json"
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_ACTIONS: Final = {
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "get": "get",
    "list": "list",
    "deletecollection": "deletecollection",
}
_METHODS: Final = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}

_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "create": _WRITE_PARAMETERS,
    "update": _WRITE_PARAMETERS,
    "patch": (*_WRITE_PARAMETERS, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
    "list": (
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "labelSelector",
        "limit",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "timeoutSeconds",
        "watch",
    ),
    "deletecollection": ("dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector", "propagationPolicy"),
    "get": (),
}
_TYPES: Final = {
    "limit": "integer",
    "timeoutSeconds": "integer",
    "gracePeriodSeconds": "integer",
    "allowWatchBookmarks": "boolean",
    "sendInitialEvents": "boolean",
    "watch": "boolean",
    "force": "boolean",
    "orphanDependents": "boolean",
}


def index_v3() -> Json:
    return {
        "paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_digest(path)}"} for path in _document_paths()}
    }


def _document_paths() -> list[str]:
    paths = [f"api/{version}" for version in group_versions("")]
    paths += [f"apis/{group}/{version}" for group in all_groups() for version in group_versions(group)]
    return paths


@cache
def _digest(path: str) -> str:
    return hashlib.sha256(encode_json(find_document_v3(path))).hexdigest().upper()


@cache
def find_document_v3(path: str) -> Json | None:
    match path.split("/"):
        case ["api", version] if version in group_versions(""):
            return _document("", version)
        case ["apis", group, version] if group and version in group_versions(group):
            return _document(group, version)
        case _:
            return None


def _document(group: str, version: str) -> Json:
    paths: Json = {}
    for row in rows_of(group, version):
        paths |= _row_paths(row, version)
    for review in REVIEWS:
        if review.group == group and review.version == version:
            scope = "namespaces/{namespace}/" if review.namespaced else ""
            kind = (group, version, review.kind)
            operation = _operation("create", kind, kind, review.kind)
            path: Json = {"post": operation}
            if review.namespaced:
                path["parameters"] = [_path_parameter("namespace")]
            paths[f"/apis/{group}/{version}/{scope}{review.plural}"] = path
    return {
        "openapi": "3.0.0",
        "info": {"title": "dray", "version": version_info()["gitVersion"]},
        "paths": paths,
        "components": {
            "schemas": _closure(paths),
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey",
                    "name": "authorization",
                    "in": "header",
                    "description": "Bearer token",
                }
            },
        },
        "security": [{"BearerToken": []}],
    }


def _closure(value: Any) -> Json:
    """All schemas that the paths refer to, also through other schemas."""
    found: Json = {}
    waiting = list(_references(value))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = described_definitions()[name]
            waiting.extend(_references(found[name]))
    return dict(sorted(found.items()))


def _references(value: Any) -> Iterator[str]:
    match value:
        case {"$ref": str(reference)}:
            yield reference.removeprefix(REFERENCE)
        case dict():
            for item in value.values():
                yield from _references(item)
        case list():
            for item in value:
                yield from _references(item)


def _row_paths(row: Row, version: str) -> Json:
    root = f"/apis/{row.group}/{version}" if row.group else f"/api/{version}"
    kind = (row.group, version, row.kind)
    base = f"{root}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{root}/{row.plural}"
    scope = [_path_parameter("namespace")] if row.namespaced else []
    single = [_path_parameter("name"), *scope]
    paths: Json = {
        base: _path_item(row, kind, ("list", "create", "deletecollection"), scope),
        f"{base}/{{name}}": _path_item(row, kind, ("get", "update", "patch", "delete"), single),
    }
    if row.namespaced:
        everywhere = _operation("list", kind, kind, f"{row.kind}ForAllNamespaces")
        paths[f"{root}/{row.plural}"] = {"get": everywhere}
    for part in row.subresources:
        paths[f"{base}/{{name}}/{part.name}"] = _subresource_item(row, kind, part, single)
    return paths


def _path_item(row: Row, kind: tuple[str, str, str], verbs: tuple[str, ...], parameters: list[Json]) -> Json:
    item: Json = {"parameters": parameters} if parameters else {}
    for verb in verbs:
        if verb not in row.verbs:
            continue
        item[_METHODS[verb]] = _operation(verb, kind, kind, row.kind)
    return item


def _subresource_item(row: Row, kind: tuple[str, str, str], part: Subresource, parameters: list[Json]) -> Json:
    body = (part.group, part.version or "v1", part.kind) if part.kind else kind
    item: Json = {"parameters": parameters}
    for verb in part.verbs:
        item[_METHODS[verb]] = _operation(verb, body, body, f"{row.kind}{part.name.capitalize()}")
    return item


def _operation(verb: str, body: tuple[str, str, str], result: tuple[str, str, str], name: str) -> Json:
    group, version, kind = body
    returned = f"{definition_name(*result)}{'List' if verb in ('list', 'deletecollection') else ''}"
    operation: Json = {
        "operationId": f"{verb}{_identifier(group)}{version.capitalize()}{name}",
        "tags": [f"{_identifier(group) or 'core'}_{version}"],
        "parameters": [
            {"name": parameter, "in": "query", "schema": {"type": _TYPES.get(parameter, "string")}}
            for parameter in _PARAMETERS[verb]
        ],
        "responses": {
            "200": {"description": "OK", "content": {_JSON: {"schema": {"$ref": REFERENCE + returned}}}},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": _ACTIONS[verb],
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }
    match verb:
        case "create" | "update":
            schema = {"$ref": REFERENCE + definition_name(*body)}
            operation["requestBody"] = {"content": {_JSON: {"schema": schema}}, "required": True}
            operation["responses"]["201"] = operation["responses"]["200"] | {"description": "Created"}
        case "patch":
            schema = {"$ref": f"{REFERENCE}{META}Patch"}
            operation["requestBody"] = {"content": {form: {"schema": schema} for form in _PATCHES}, "required": True}
        case "delete" | "deletecollection":
            schema = {"$ref": f"{REFERENCE}{META}DeleteOptions"}
            operation["requestBody"] = {"content": {_JSON: {"schema": schema}}}
    return operation


def _identifier(group: str) -> str:
    return "".join(part.capitalize() for part in group.removesuffix(".k8s.io").split(".")) if group else ""


def _path_parameter(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


@cache
def document_v2() -> Json:
    """Schemas and paths in the older format, as far as clients use it."""
    paths: Json = {}
    for path in _document_paths():
        document = find_document_v3(path)
        assert document is not None
        for name, item in document["paths"].items():
            paths[name] = {
                key: [_parameter_v2(one) for one in value] if key == "parameters" else _operation_v2(value)
                for key, value in item.items()
            }
    return {
        "swagger": "2.0",
        "info": {"title": "dray", "version": version_info()["gitVersion"]},
        "paths": paths,
        "definitions": _renamed(described_definitions()),
    }


def _operation_v2(operation: Json) -> Json:
    parameters = [_parameter_v2(one) for one in operation["parameters"]]
    body = operation.get("requestBody")
    if body is not None:
        schema = next(iter(body["content"].values()))["schema"]
        parameters.append({"name": "body", "in": "body", "required": body.get("required", False), "schema": schema})
    responses = {
        code: {"description": answer["description"]}
        | ({"schema": answer["content"][_JSON]["schema"]} if "content" in answer else {})
        for code, answer in operation["responses"].items()
    }
    result: Json = {
        **{key: value for key, value in operation.items() if key not in ("requestBody", "parameters", "responses")},
        "consumes": [_JSON] if body is None else list(body["content"]),
        "produces": [_JSON],
        "parameters": parameters,
        "responses": responses,
    }
    renamed: Json = _renamed(result)
    return renamed


def _parameter_v2(parameter: Json) -> Json:
    schema = parameter["schema"]
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **schema}


def _renamed(value: Any) -> Any:
    """v2 refers to `#/definitions/`, and has no `allOf` around single references, nor `oneOf`."""
    match value:
        case {"allOf": [{"$ref": str(reference)}], **rest}:
            kept = {key: item for key, item in rest.items() if str(key).startswith("x-")}
            return {"$ref": reference.replace(REFERENCE, "#/definitions/"), **kept}
        case {"$ref": str(reference)}:
            return {"$ref": reference.replace(REFERENCE, "#/definitions/")}
        case {"oneOf": _, **rest}:
            return {**rest, "type": "string"}
        case dict():
            return {key: _renamed(item) for key, item in value.items()}
        case list():
            return [_renamed(item) for item in value]
        case _:
            return value
