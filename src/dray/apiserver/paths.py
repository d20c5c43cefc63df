"""Everything that isn't a resource: discovery, OpenAPI, the version."""

from __future__ import annotations

from typing import Final

from dray.api.meta import Json
from dray.apiserver import discovery, openapi
from dray.apiserver.media import read_accept
from dray.apiserver.records import encode_json
from dray.apiserver.refusals import method_not_allowed
from dray.apiserver.requests import ApiRequest
from dray.apiserver.responses import ApiResponse

_TEXT: Final = "text/plain; charset=utf-8"


def not_found_page() -> ApiResponse:
    return ApiResponse(404, b"404 page not found\n", content_type=_TEXT)


def serve_path(request: ApiRequest) -> ApiResponse:
    parts = request.info.path.strip("/").split("/")
    if request.method not in ("GET", "HEAD"):
        if parts[0] in ("api", "apis", "version", "openapi"):
            raise method_not_allowed()
        return not_found_page()
    match parts:
        case [""]:
            return _json({"paths": sorted(_paths())})
        case ["version"]:
            return _json(discovery.version_info())
        case ["api" | "apis" as root]:
            return _serve_groups(request, legacy=root == "api")
        case ["api", version]:
            return _found(discovery.find_resources("", version))
        case ["apis", group]:
            return _found(discovery.find_group(group))
        case ["apis", group, version]:
            return _found(discovery.find_resources(group, version) if group else None)
        case ["openapi", "v2"]:
            return _json(openapi.document_v2())
        case ["openapi", "v3"]:
            return _json(openapi.index_v3())
        case ["openapi", "v3", *path]:
            return _found(openapi.find_document_v3("/".join(path)))
        case _:
            return not_found_page()


def _serve_groups(request: ApiRequest, *, legacy: bool) -> ApiResponse:
    wanted = read_accept(request.header("accept"))
    if wanted.shape == "APIGroupDiscoveryList":
        document = discovery.aggregated(legacy, f"apidiscovery.k8s.io/{wanted.version}")
        form = f"application/json;g=apidiscovery.k8s.io;v={wanted.version};as=APIGroupDiscoveryList"
        return ApiResponse(200, encode_json(document), content_type=form, headers=(("Vary", "Accept"),))
    return _json(discovery.core_versions(request.header("host")) if legacy else discovery.group_list())


def _paths() -> list[str]:
    paths = ["/api", "/apis", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
    paths += [f"/api/{version}" for version in discovery.group_versions("")]
    for group in discovery.all_groups():
        paths.append(f"/apis/{group}")
        paths += [f"/apis/{group}/{version}" for version in discovery.group_versions(group)]
    return paths


def _json(document: Json) -> ApiResponse:
    return ApiResponse(200, encode_json(document))


def _found(document: Json | None) -> ApiResponse:
    return not_found_page() if document is None else _json(document)
