from __future__ import annotations

import pytest

from tests.unit.apiserver.api_calls import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    PODS,
    Caller,
    make_claim,
    make_config_map,
    make_pod,
    start_api,
)


@pytest.fixture
async def api() -> Caller:
    return await start_api()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nonsense", 404),
        ("GET", "/apis/resource.k8s.io/v9/resourceclaims", 404),
        ("GET", f"{CLAIMS}/x/nonsense", 404),
        ("GET", "/apis/resource.k8s.io/v1/resourceclaims/x", 404),
        ("GET", "/apis/resource.k8s.io/v1/namespaces/default/deviceclasses", 404),
        ("GET", f"{PODS}/x/status/more", 404),
        ("GET", "/nowhere", 404),
        ("POST", "/apis/resource.k8s.io/v1/resourceclaims", 405),
        ("POST", f"{CLAIMS}/x", 405),
        ("GET", f"{PODS}/x/binding", 405),
        ("PUT", CLAIMS, 405),
        ("PATCH", CLAIMS, 405),
        ("DELETE", "/apis/resource.k8s.io/v1/resourceclaims", 405),
        ("POST", "/version", 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
    ],
)
async def test_what_is_not_served_says_so(api: Caller, method: str, path: str, status: int) -> None:
    answer = await api.ask(method, path)
    assert answer.status == status
    if status == 404:
        assert answer.body == b"404 page not found\n"


async def test_names_cannot_lead_elsewhere(api: Caller) -> None:
    await api.create(CONFIG_MAPS, make_config_map("x"))
    for name in ("..", "a%2Fb", "x%25"):
        answer = await api.ask("GET", f"{CONFIG_MAPS}/{name}")
        assert answer.status == 400
        assert "Name parameter invalid" in answer.message


async def test_a_body_of_another_kind_or_version_is_refused(api: Caller) -> None:
    wrong_kind = await api.ask("POST", CONFIG_MAPS, make_pod("x"))
    assert wrong_kind.message.startswith('Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod)')
    wrong_version = await api.ask("POST", CLAIMS, {**make_claim("c"), "apiVersion": "resource.k8s.io/v1beta2"})
    assert wrong_version.message == (
        "the API version in the data (resource.k8s.io/v1beta2) does not match the expected API version "
        "(resource.k8s.io/v1)"
    )


async def test_a_body_without_type_is_of_the_kind_that_the_path_names(api: Caller) -> None:
    body = {key: value for key, value in make_claim("c").items() if key not in ("kind", "apiVersion")}
    assert (await api.create(CLAIMS, body))["kind"] == "ResourceClaim"
    assert (await api.create(CONFIG_MAPS, {"metadata": {"name": "x"}}))["apiVersion"] == "v1"


async def test_yaml_is_read_and_written(api: Caller) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: 'yes'}\n"
    created = await api.ask("POST", CONFIG_MAPS, text, content_type="application/yaml", accept="application/yaml")
    assert created.status == 201
    assert created.content_type == "application/yaml"
    assert b"data:\n  a: 'yes'\n" in created.body


@pytest.mark.parametrize("text", [b"a: &x [1]\nb: *x\n{", b"- 1\n- 2\n", b"a: 1\n---\nb: 2\n", b"\xff", b""])
async def test_bad_yaml_is_a_bad_request(api: Caller, text: bytes) -> None:
    answer = await api.ask("POST", CONFIG_MAPS, text, content_type="application/yaml")
    assert answer.status == 400


async def test_wrong_types_are_named_as_go_names_them(api: Caller) -> None:
    body = {**make_pod("p"), "spec": {"containers": [{"name": 5}]}}
    answer = await api.ask("POST", PODS, body)
    assert answer.message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field '
        "Container.spec.containers.name of type string"
    )


async def test_unknown_fields_warn_are_refused_or_are_ignored(api: Caller) -> None:
    body = make_pod("p", nope=1)
    warned = await api.ask("POST", f"{PODS}?dryRun=All", body)
    assert warned.warnings == ['299 - "unknown field \\"spec.nope\\""']
    strict = await api.ask("POST", f"{PODS}?fieldValidation=Strict", body)
    assert strict.message.endswith('strict decoding error: unknown field "spec.nope"')
    silent = await api.ask("POST", f"{PODS}?dryRun=All&fieldValidation=Ignore", body)
    assert (silent.status, silent.warnings) == (201, [])


async def test_fields_that_come_twice_are_noticed(api: Caller) -> None:
    text = b'{"metadata":{"name":"x","name":"y"},"data":{"a":"1","b":"2","a":"3"}}'
    strict = await api.ask("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", text)
    assert strict.message.endswith('duplicate field "metadata.name", duplicate field "data.a"')
    lenient = await api.ask("POST", CONFIG_MAPS, text)
    assert lenient.warnings == ['299 - "duplicate field \\"metadata.name\\""', '299 - "duplicate field \\"data.a\\""']
    assert lenient.json["data"] == {"a": "3", "b": "2"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("fieldValidation=Maybe", "fieldValidation"),
        ("dryRun=Some", "dryRun"),
        (f"fieldManager={'x' * 129}", "fieldManager"),
        ("fieldManager=a%00b", "fieldManager"),
    ],
)
async def test_bad_options_are_invalid(api: Caller, query: str, field: str) -> None:
    answer = await api.ask("POST", f"{CONFIG_MAPS}?{query}", make_config_map("x"))
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [field]


async def test_the_answer_must_be_something_we_can_write(api: Caller) -> None:
    answer = await api.ask("GET", CLASSES, accept="application/vnd.kubernetes.protobuf")
    assert answer.status == 406
    both = await api.ask("GET", CLASSES, accept="application/vnd.kubernetes.protobuf,application/json")
    assert both.status == 200


async def test_a_dry_run_changes_nothing(api: Caller) -> None:
    await api.create(CONFIG_MAPS, make_config_map("x"))
    created = await api.ask("POST", f"{CONFIG_MAPS}?dryRun=All", make_config_map("y"))
    assert "resourceVersion" not in created.json["metadata"]
    again = await api.ask("POST", f"{CONFIG_MAPS}?dryRun=All", make_config_map("x"))
    assert again.status == 409
    merge = "application/merge-patch+json"
    await api.ask("PATCH", f"{CONFIG_MAPS}/x?dryRun=All", {"data": {"a": "b"}}, content_type=merge)
    await api.ask("DELETE", f"{CONFIG_MAPS}/x?dryRun=All")
    assert "data" not in await api.get(f"{CONFIG_MAPS}/x")
    assert (await api.ask("GET", f"{CONFIG_MAPS}/y")).status == 404


async def test_a_delete_answers_with_the_object_or_a_status(api: Caller) -> None:
    created = await api.create(CONFIG_MAPS, make_config_map("x"))
    deleted = (await api.ask("DELETE", f"{CONFIG_MAPS}/x")).json
    assert deleted["status"] == "Success"
    assert deleted["details"] == {"name": "x", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    await api.create(CLAIMS, make_claim("c"))
    assert (await api.ask("DELETE", f"{CLAIMS}/c")).json["kind"] == "ResourceClaim"


async def test_tables_show_what_they_are_asked_to_include(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    plain = (await api.ask("GET", f"{CLAIMS}/c", accept=accept)).json
    assert plain["rows"][0]["cells"][:2] == ["c", "pending"]
    assert plain["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = (await api.ask("GET", f"{CLAIMS}?includeObject=Object", accept=accept)).json
    assert whole["rows"][0]["object"]["spec"]
    none = (await api.ask("GET", f"{CLAIMS}?includeObject=None", accept=accept)).json
    assert none["rows"][0]["object"] is None


async def test_objects_that_are_too_large_are_refused(api: Caller) -> None:
    variables = [{"name": f"V{number}", "value": "x" * 10_000} for number in range(160)]
    answer = await api.ask("POST", PODS, make_pod("p", containers=[{"name": "c", "image": "x", "env": variables}]))
    assert answer.status == 413
    assert "the limit is 1572864" in answer.message


async def test_fields_that_are_always_written_are_there_and_nobodys_else(api: Caller) -> None:
    node = await api.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    for name in ("a", "b"):
        answer = await api.ask("POST", jobs, {"metadata": {"name": name}, "spec": {}})
        fields = {cause["field"] for cause in answer.json["details"]["causes"]}
        assert "spec.template.spec.restartPolicy" in fields, "what one body lacks is not filled in for the next"


async def test_a_patch_cannot_rename(api: Caller) -> None:
    await api.create(CLAIMS, make_claim("c"))
    merge = "application/merge-patch+json"
    answer = await api.ask("PATCH", f"{CLAIMS}/c", {"metadata": {"name": "d"}}, content_type=merge)
    assert answer.message == (
        'ResourceClaim.resource.k8s.io "d" is invalid: metadata.name: Invalid value: "d": field is immutable'
    )


async def test_an_update_means_one_object(api: Caller) -> None:
    created = await api.create(CLAIMS, make_claim("c"))
    created["metadata"]["uid"] = "other"
    answer = await api.ask("PUT", f"{CLAIMS}/c", created)
    assert answer.status == 409
    assert "Key: /registry/resourceclaims/default/c, ResourceVersion: 0" in answer.message
    assert "Precondition failed: UID in precondition: other, UID in object meta: " in answer.message


async def test_old_versions_warn_even_when_they_fail(api: Caller) -> None:
    answer = await api.ask("GET", CLAIMS.replace("/v1/", "/v1beta1/") + "/nope")
    assert answer.status == 404
    assert answer.warnings == [
        '299 - "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+"'
    ]


async def test_taint_rules_are_stricter_in_their_newest_version(api: Caller) -> None:
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    body = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "e.com/x", "effect": "NoSchedule"}}}
    created = await api.create(rules, body)
    del created["metadata"]["resourceVersion"]
    answer = await api.ask("PUT", f"{rules}/r", created)
    assert answer.message == (
        'devicetaintrules.resource.k8s.io "r" is invalid: metadata.resourceVersion: Invalid value: 0: must be '
        "specified for an update"
    )
    assert (await api.ask("DELETE", f"{rules}/r")).json["kind"] == "Status"
    await api.create(rules, body)
    assert (await api.ask("DELETE", f"{rules.replace('/v1/', '/v1beta2/')}/r")).json["kind"] == "DeviceTaintRule"


async def test_the_old_way_to_watch_one_object(api: Caller) -> None:
    for name in ("a", "b"):
        await api.create(CLAIMS, make_claim(name))
    path = CLAIMS.replace("/v1/namespaces", "/v1/watch/namespaces")
    events = (await api.ask("GET", f"{path}/b?timeoutSeconds=1")).events
    assert [event["object"]["metadata"]["name"] for event in events] == ["b"]


@pytest.mark.parametrize("validation", ["Ignore", "Warn"])
async def test_a_patch_of_a_status_that_the_kind_does_not_have_changes_nothing(api: Caller, validation: str) -> None:
    before = await api.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
    path = f"{CLASSES}/gpu?fieldValidation={validation}"
    added = {"status": {"a": 1}}
    answer = await api.ask("PATCH", path, added, content_type="application/merge-patch+json")
    assert answer.json == before
    null = [{"op": "add", "path": "/status", "value": None}]
    answer = await api.ask("PATCH", path, null, content_type="application/json-patch+json")
    assert answer.json == before


@pytest.mark.parametrize("validation", ["Ignore", "Warn"])
async def test_a_patch_can_remove_the_whole_status(api: Caller, validation: str) -> None:
    await api.create(CLAIMS, make_claim("c"))
    result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "x"}
    path = f"{CLAIMS}/c/status?fieldValidation={validation}"
    for status in ({"allocation": {"devices": {"results": [result]}}}, None):
        answer = await api.ask("PATCH", path, {"status": status}, content_type="application/merge-patch+json")
        assert answer.status == 200, answer.body
        assert bool(answer.json["status"]) == bool(status)


@pytest.mark.parametrize("validation", ["Ignore", "Warn"])
async def test_a_patch_that_removes_all_metadata_is_refused(api: Caller, validation: str) -> None:
    await api.create(CLAIMS, make_claim("c"))
    path, patch = f"{CLAIMS}/c?fieldValidation={validation}", {"metadata": None}
    answer = await api.ask("PATCH", path, patch, content_type="application/merge-patch+json")
    assert answer.status == 422
    assert "metadata.name: Required value" in answer.message
