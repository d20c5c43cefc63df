from __future__ import annotations

import pytest

from dray.apiserver.requests import Query, RequestInfo, parse_request


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/api/v1/namespaces", "", ("list", "", "v1", "namespaces", "", "", "")),
        ("GET", "/api/v1/namespaces/x", "", ("get", "", "v1", "namespaces", "", "x", "x")),
        ("PUT", "/api/v1/namespaces/x/finalize", "", ("update", "", "v1", "namespaces", "finalize", "x", "x")),
        ("GET", "/api/v1/namespaces/x/pods", "", ("list", "", "v1", "pods", "", "x", "")),
        ("GET", "/api/v1/namespaces/x/pods", "watch=1", ("watch", "", "v1", "pods", "", "x", "")),
        ("GET", "/api/v1/namespaces/x/pods", "watch=false", ("list", "", "v1", "pods", "", "x", "")),
        ("GET", "/api/v1/watch/namespaces/x/pods", "", ("watch", "", "v1", "pods", "", "x", "")),
        ("POST", "/api/v1/namespaces/x/pods/p/binding", "", ("create", "", "v1", "pods", "binding", "x", "p")),
        (
            "DELETE",
            "/apis/resource.k8s.io/v1/resourceslices",
            "",
            ("deletecollection", "resource.k8s.io", "v1", "resourceslices", "", "", ""),
        ),
        ("PATCH", "/apis/a/v1/things/n/status", "", ("patch", "a", "v1", "things", "status", "", "n")),
        ("GET", "/apis/a/v1/things", "fieldSelector=metadata.name%3Dn", ("list", "a", "v1", "things", "", "", "n")),
        ("GET", "/api/v1/pods/a%2Fb", "", ("get", "", "v1", "pods", "", "", "a/b")),
    ],
)
def test_paths_are_taken_apart(method: str, path: str, query: str, expected: tuple[str, ...]) -> None:
    info = parse_request(method, path, Query(query))
    found = (info.verb, info.group, info.version, info.resource, info.subresource, info.namespace, info.name)
    assert found == expected


@pytest.mark.parametrize("path", ["/", "/version", "/api", "/api/v1", "/apis", "/apis/g", "/apis/g/v1", "/healthz"])
def test_other_paths_are_no_resource_requests(path: str) -> None:
    info = parse_request("GET", path, Query())
    assert info == RequestInfo(verb="get", path=path)
    assert not info.is_resource_request


def test_flags_are_read_as_kubernetes_reads_them() -> None:
    query = Query("a&b=true&c=false&d=0&e=anything&f=False")
    assert [query.flag(name) for name in "abcdefg"] == [True, True, False, False, True, False, False]


def test_a_query_of_endless_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="Max number of fields"):
        Query("&".join(f"p{number}=1" for number in range(200)))
