"""Subresources that do something else than write a part of the object: binding, eviction, token, finalize."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from dray.api.errors import BadRequest, Conflict, NotFound
from dray.api.meta import Json
from dray.api.times import format_time
from dray.apiserver import refusals
from dray.apiserver.deletion import delete_object
from dray.apiserver.options import WriteOptions, read_delete_options
from dray.apiserver.pods import bind_pod, check_binding
from dray.apiserver.records import Record
from dray.apiserver.registry import Proposal, Registry, Step
from dray.apiserver.requests import Query
from dray.apiserver.resources import find_row
from dray.apiserver.service_accounts import BoundObject, TokenIssuer, TokenSubject
from dray.apiserver.strategies import Verdict, WriteContext
from dray.apiserver.targets import Caller, Target, Written
from dray.validation.fields import Errors, Path, invalid

_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 1 << 32
_DEFAULT_TOKEN: Final = 3600

SUCCESS: Final[Json] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(registry: Registry, target: Target, binding: Json, options: WriteOptions, caller: Caller) -> None:
    """Assigns a pod to a node. Raises Conflict if it has one already."""
    errors = check_binding(binding)
    if errors:
        raise refusals.invalid_object("Binding", "", target.name, errors)
    name = binding.get("metadata", {}).get("name", "")
    if name and name != target.name:
        raise BadRequest(f"name in URL does not match name in Binding object ({target.name} != {name})")

    def judge(decoded: Json, old: Record, context: WriteContext) -> Verdict:
        return Verdict(bind_pod(old.obj, decoded, context.now))

    metadata = binding.get("metadata") or {}
    wanted = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    step = Step(target, lambda _: Proposal(binding, wanted), judge)
    await registry.modify((step,), options, caller, verb="create")


async def evict(registry: Registry, target: Target, eviction: Json, caller: Caller, query: Query) -> None:
    """Deletes a pod on behalf of whoever wants its node empty."""
    metadata = eviction.get("metadata") or {}
    if metadata.get("name") not in (None, "", target.name):
        raise BadRequest(
            f"name in URL does not match name in Eviction object ({target.name} != {metadata.get('name')})"
        )
    options = read_delete_options(query, eviction.get("deleteOptions") or None)
    row = find_row("", "v1", "pods")
    assert row is not None
    await delete_object(registry, Target(row, "v1", target.namespace, target.name), options, caller)


async def finalize_namespace(
    registry: Registry, target: Target, body: bytes, options: WriteOptions, caller: Caller
) -> Written:
    """Writes a namespace's own finalizers; the last one that goes takes a deleted namespace with it."""
    warnings: list[str] = []
    decoded = registry.decode(target, body, registry.now(), options, warnings)
    metadata = decoded["metadata"]
    if metadata.get("name") != target.name:
        sent = metadata.get("name", "")
        raise BadRequest(f"the name of the object ({sent}) does not match the name on the URL ({target.name})")

    def judge(namespace: Json, old: Record, context: WriteContext) -> Verdict:
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        spec = {"finalizers": finalizers} if finalizers else {}
        return Verdict({**old.obj, "metadata": dict(old.obj["metadata"]), "spec": spec})

    step = Step(target, lambda _: Proposal(decoded, metadata), judge)
    written = await registry.modify((step,), options, caller, verb="update")
    return written._replace(warnings=[*warnings, *written.warnings])


async def request_token(registry: Registry, target: Target, request: Json, issuer: TokenIssuer | None) -> Json:
    """A token for a service account, bound to a pod if the request names one."""
    if issuer is None:
        raise NotFound("the server could not find the requested resource", details={})
    account = (await registry.get(target)).obj["metadata"]
    spec = request.get("spec") or {}
    seconds = spec.get("expirationSeconds", _DEFAULT_TOKEN)
    audiences = spec.get("audiences") or []
    errors = _check_token_request(seconds, audiences)
    if errors:
        raise refusals.invalid_object("TokenRequest", "authentication.k8s.io", "", errors)
    pod = await _bound_pod(registry, target, spec.get("boundObjectRef") or {})
    node = BoundObject(pod[1], await _uid(registry, "nodes", "", pod[1])) if pod is not None and pod[1] else None
    subject = TokenSubject(target.namespace, target.name, account.get("uid", ""), None if pod is None else pod[0], node)
    token, expires = issuer.issue(subject, seconds=seconds, audiences=audiences)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": target.name,
            "namespace": target.namespace,
            "creationTimestamp": registry.now(),
        },
        "spec": {
            **spec,
            "expirationSeconds": seconds,
            "audiences": audiences,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {
            "token": token,
            "expirationTimestamp": format_time(datetime.fromtimestamp(expires, UTC)),
        },
    }


def _check_token_request(seconds: object, audiences: object) -> Errors:
    errors: Errors = []
    place = Path("spec").child("expirationSeconds")
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise BadRequest("json: cannot unmarshal expirationSeconds into Go struct field of type int64")
    if not isinstance(audiences, list) or not all(isinstance(audience, str) for audience in audiences):
        raise BadRequest("json: cannot unmarshal audiences into Go struct field of type []string")
    if seconds < _SHORTEST_TOKEN:
        errors.append(invalid(place, seconds, "may not specify a duration less than 10 minutes"))
    elif seconds > _LONGEST_TOKEN:
        errors.append(invalid(place, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


async def _bound_pod(registry: Registry, target: Target, reference: Json) -> tuple[BoundObject, str] | None:
    """The pod that a token dies with, and its node."""
    if not reference:
        return None
    if reference.get("kind") != "Pod":
        errors = [invalid(Path("spec").child("boundObjectRef").child("kind"), reference.get("kind"), "must be Pod")]
        raise refusals.invalid_object("TokenRequest", "authentication.k8s.io", "", errors)
    row = find_row("", "v1", "pods")
    assert row is not None
    pod = (await registry.get(Target(row, "v1", target.namespace, reference.get("name", "")))).obj
    uid = pod["metadata"]["uid"]
    if reference.get("uid") not in (None, "", uid):
        raise Conflict(
            f'Operation cannot be fulfilled on Pod "{reference["name"]}": the UID in the bound object reference '
            f"({reference['uid']}) does not match the UID in record. The object might have been deleted and then "
            "recreated"
        )
    return BoundObject(reference["name"], uid), pod["spec"].get("nodeName", "")


async def _uid(registry: Registry, plural: str, namespace: str, name: str) -> str:
    row = find_row("", "v1", plural)
    assert row is not None
    entry = await registry.store.get(row.key(namespace, name))
    return "" if entry is None else Record.from_entry(row, entry).obj["metadata"].get("uid", "")
