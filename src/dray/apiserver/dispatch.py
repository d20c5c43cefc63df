"""From a request to an answer: finds the resource, reads options and body, calls the registry, renders the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from dray.api.errors import BadRequest, StatusError
from dray.api.fieldselectors import FieldRequirement, FieldSelector
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.authorization import AccessControl
from dray.apiserver.default_roles import iter_default_bindings, iter_default_roles
from dray.apiserver.deletion import Deleted, delete_collection, delete_object
from dray.apiserver.escalation import check_grant
from dray.apiserver.fitting import DoesNotFit, fit_object
from dray.apiserver.listing import Page, list_page, parse_revision
from dray.apiserver.media import Wanted, read_accept, read_object_bytes, read_patch
from dray.apiserver.namespaces import create_namespaces
from dray.apiserver.options import WriteOptions, read_delete_options, read_list_options, read_write_options
from dray.apiserver.outputs import render_batch, render_error_event, render_object, render_page
from dray.apiserver.patching import patch_object
from dray.apiserver.paths import not_found_page, serve_path
from dray.apiserver.pod_logs import LogSource, NoLogs, serve_log
from dray.apiserver.records import decode_json, encode_json
from dray.apiserver.registry import Registry
from dray.apiserver.requests import ApiRequest
from dray.apiserver.resources import Row, find_row
from dray.apiserver.responses import ApiResponse
from dray.apiserver.reviews import AuthenticateToken, Reviewer, ReviewKind, find_review
from dray.apiserver.schemas import meta_type, type_of
from dray.apiserver.service_accounts import TokenIssuer
from dray.apiserver.subresources import SUCCESS, bind, evict, finalize_namespace, request_token
from dray.apiserver.targets import Caller, Target, Written
from dray.apiserver.watching import watch_objects
from dray.runtime.client import PatchType

_LONGEST_SUMMARY: Final = 30


class _TypeMeta(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


_read_type: Final = msgspec.json.Decoder(_TypeMeta).decode


class Api:
    """The whole API over one registry. `handle` may be called by many at once."""

    def __init__(
        self,
        registry: Registry,
        *,
        access: AccessControl | None = None,
        token_issuer: TokenIssuer | None = None,
        authenticate_token: AuthenticateToken | None = None,
    ) -> None:
        self.registry = registry
        self._reviewer = Reviewer(registry.authorize, None if access is None else access.policy, authenticate_token)
        self._token_issuer = token_issuer
        self._streams = 0
        self.logs: LogSource = NoLogs()
        """Where the logs of containers come from; whoever knows the nodes sets it."""
        if access is not None:
            registry.admission.check_grant = partial(check_grant, policy=access.policy, authorize=access)

    async def bootstrap(self) -> None:
        """Makes what every server has: namespaces, default roles and bindings."""
        await create_namespaces(self.registry)
        for obj in (*iter_default_roles(), *iter_default_bindings()):
            plural = obj["kind"].lower() + "s"
            row = find_row("rbac.authorization.k8s.io", "v1", plural)
            assert row is not None
            namespace = obj["metadata"].get("namespace", "")
            if await self.registry.store.get(row.key(namespace, obj["metadata"]["name"])) is None:
                await self.registry.create(Target(row, "v1", namespace), obj, WriteOptions(), Caller())

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Raises StatusError."""
        info = request.info
        if not info.is_resource_request:
            return serve_path(request)
        row = find_row(info.group, info.version, info.resource)
        if row is None:
            review = find_review(info.group, info.version, info.resource)
            if review is None or info.subresource or (info.name and info.verb != "create"):
                return not_found_page()
            return await self._review(review, request)
        if not _is_routed(row, request):
            return not_found_page()
        name = info.name if info.verb not in ("list", "watch", "deletecollection") else ""
        target = Target(row, info.version, info.namespace if row.namespaced else "", name, info.subresource)
        if row.kind == "Namespace" and not row.namespaced:
            target = Target(row, info.version, "", name, info.subresource)
        caller = Caller(request.user, _agent(request))
        deprecation = row.deprecation(info.version)
        try:
            with refusals.store_errors:
                response = await self._serve(request, target, caller)
        except RecursionError as error:
            raise BadRequest("the request body is nested too deeply") from error
        except StatusError as error:
            if deprecation:
                error.headers["Warning"] = _warning(deprecation)
            raise
        return _with_warnings(response, [deprecation])

    async def _serve(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        verb = request.info.verb
        if verb in ("update", "patch") and not target.name:
            raise refusals.method_not_allowed()
        if verb == "deletecollection" and (
            verb not in target.row.verbs or (target.row.namespaced and not target.namespace)
        ):
            raise refusals.method_not_allowed()
        if target.subresource:
            part = target.row.subresource(target.subresource)
            assert part is not None
            if verb not in part.verbs:
                raise refusals.method_not_allowed()
        match verb:
            case "get" if target.subresource == "log":
                return await serve_log(self.registry, target, request.query, self.logs)
            case "get":
                self._check_revision(request)
                record = await self.registry.get(target)
                return self._answer(request, 200, render_object(record, target, *self._form(request)))
            case "list":
                options = read_list_options(request.query, target.row, target.version, watch=False)
                page = await list_page(self.registry, target, options)
                return self._answer(request, 200, render_page(page, target, *self._form(request)))
            case "watch":
                return self._watch(request, target)
            case "create":
                return await self._create(request, target, caller)
            case "update":
                return await self._update(request, target, caller)
            case "patch":
                return await self._patch(request, target, caller)
            case "delete":
                return await self._delete(request, target, caller)
            case "deletecollection":
                return await self._delete_collection(request, target, caller)
            case _:
                raise refusals.method_not_allowed()

    def _check_revision(self, request: ApiRequest) -> None:
        """We always show the latest, which is no answer to who knows of a later one."""
        text = request.query.text("resourceVersion")
        current = self.registry.store.current_revision
        if text and parse_revision(text) > current:
            raise refusals.too_large_revision(int(text), current)

    async def _create(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        if bool(target.name) != bool(target.subresource) or (target.row.namespaced and not target.namespace):
            raise refusals.method_not_allowed()
        options = read_write_options(request.query, "CreateOptions")
        if target.subresource:
            return await self._create_subresource(request, target, caller)
        wanted = read_accept(request.header("accept"))
        warnings: list[str] = []
        body = _read_body(request, target, warnings)
        written = await self.registry.create(target, body, options, caller)
        return _with_warnings(self._written(request, target, written, wanted), warnings)

    async def _create_subresource(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        options = read_write_options(request.query, "CreateOptions")
        part = target.row.subresource(target.subresource)
        assert part is not None
        body = decode_json(_read_typed(request, part.kind, ""))
        try:
            fitted = fit_object(body, type_of(part.group, part.version or "v1", part.kind), [])
        except DoesNotFit as error:
            raise BadRequest(f'{part.kind} in version "v1" cannot be handled as a {part.kind}: {error}') from error
        match target.subresource:
            case "binding":
                await bind(self.registry, target, fitted, options, caller)
            case "eviction":
                await evict(self.registry, target, fitted, caller, request.query)
            case _:
                token = await request_token(self.registry, target, fitted, self._token_issuer)
                return ApiResponse(201, encode_json(token))
        return ApiResponse(201, encode_json(SUCCESS))

    async def _update(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        options = read_write_options(request.query, "UpdateOptions")
        refusals.check_name(target.name)
        wanted = read_accept(request.header("accept"))
        warnings: list[str] = []
        body = _read_body(request, target, warnings)
        if target.subresource == "finalize":
            written = await finalize_namespace(self.registry, target, body, options, caller)
        else:
            written = await self.registry.update(target, body, options, caller)
        return _with_warnings(self._written(request, target, written, wanted), warnings)

    async def _patch(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        patch_type, patch = read_patch(request.body, request.header("content-type"))
        options = read_write_options(request.query, "PatchOptions", apply=patch_type is PatchType.APPLY)
        wanted = read_accept(request.header("accept"))
        written = await patch_object(self.registry, target, patch_type, patch, options, caller)
        return self._written(request, target, written, wanted)

    async def _delete(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        options = read_delete_options(request.query, _read_delete_body(request))
        wanted = read_accept(request.header("accept"))
        deleted = await delete_object(self.registry, target, options, caller)
        status = 202 if not deleted.gone and options.orphan_dependents is False else 200
        if deleted.gone and not target.row.strategy.returns_deleted(target.version):
            body = encode_json(_deleted_status(target, deleted))
        else:
            body = render_object(deleted.record, target, wanted, self.registry.clock.now(), "")
        return _with_warnings(self._answer(request, status, body), deleted.warnings)

    async def _delete_collection(self, request: ApiRequest, target: Target, caller: Caller) -> ApiResponse:
        options = read_delete_options(request.query, _read_delete_body(request))
        listing = read_list_options(request.query, target.row, target.version, watch=False)
        records, revision = await delete_collection(self.registry, target, listing, options, caller)
        page = Page(records, revision, "", None)
        return self._answer(request, 200, render_page(page, target, *self._form(request)))

    def _watch(self, request: ApiRequest, target: Target) -> ApiResponse:
        options = read_list_options(request.query, target.row, target.version, watch=True)
        if options.resource_version:
            parse_revision(options.resource_version)
        if request.info.name and not options.fields.requirements:  # the old form: /watch/.../NAME
            only = FieldRequirement("metadata.name", request.info.name)
            options = replace(options, fields=FieldSelector((only,)))
        form = self._form(request)

        async def stream() -> AsyncIterator[bytes]:
            clock = asyncio.get_running_loop().time
            self._streams += 1
            try:
                async with watch_objects(self.registry, target, options) as batches:
                    async for batch in batches:
                        data = render_batch(batch, target, *form)
                        for start in range(0, len(data), _CHUNK):
                            yield data[start : start + _CHUNK]
                        # Under load events come in quick succession. Watchers then take them together, all at the
                        # same ticks, so that one writing serves them all; the first event after a pause goes at once.
                        # Sending costs the same for one event as for twenty, so many watchers have longer ticks.
                        tick = _TICK * min(self._streams // _STREAMS_PER_TICK + 1, _LONGEST_TICK)
                        await asyncio.sleep(tick - clock() % tick)
            except StatusError as error:
                yield render_error_event(error.status())
            finally:
                self._streams -= 1

        return ApiResponse(200, stream(), content_type=form[0].media)

    async def _review(self, review: ReviewKind, request: ApiRequest) -> ApiResponse:
        if request.info.verb != "create" or (review.namespaced and not request.info.namespace):
            raise refusals.method_not_allowed()
        body = decode_json(_read_typed(request, review.kind, review.api_version))
        answer = await self._reviewer.answer(review, body, request.info.namespace, request.user)
        return ApiResponse(201, encode_json(answer))

    def _form(self, request: ApiRequest) -> tuple[Wanted, Any, str]:
        """How to render: the wanted form, the time, and what of the objects a Table shall include."""
        wanted = read_accept(request.header("accept"))
        return wanted, self.registry.clock.now(), request.query.text("includeObject")

    def _written(self, request: ApiRequest, target: Target, written: Written, wanted: Wanted) -> ApiResponse:
        body = render_object(written.record, target, wanted, self.registry.clock.now(), "")
        response = self._answer(request, 201 if written.created else 200, body)
        return _with_warnings(response, written.warnings)

    def _answer(self, request: ApiRequest, status: int, body: bytes) -> ApiResponse:
        return ApiResponse(status, body, content_type=read_accept(request.header("accept")).media)


_CHUNK: Final = 1 << 20
_TICK: Final = 0.01
_STREAMS_PER_TICK: Final = 25
_LONGEST_TICK: Final = 5
"""Seconds between two looks of a watcher, if there is something to see."""


def _is_routed(row: Row, request: ApiRequest) -> bool:
    """Whether such a path exists at all; what may be done there is another question."""
    info = request.info
    if info.extra_path or (info.subresource and row.subresource(info.subresource) is None):
        return False
    if not row.namespaced:
        return not info.namespace or row.kind == "Namespace"
    single = info.verb not in ("list", "watch", "deletecollection") and bool(info.name)
    return bool(info.namespace) or not single


def _agent(request: ApiRequest) -> str:
    """The program that asks, as its User-Agent begins: `kubectl/v1.32 (linux)` is kubectl."""
    agent = request.header("user-agent").partition("/")[0]
    return agent[:128] if agent and agent.isprintable() else "unknown"


def _read_body(request: ApiRequest, target: Target, warnings: list[str]) -> bytes:
    return _read_typed(request, target.row.kind, target.api_version, warnings)


def _read_typed(request: ApiRequest, kind: str, api_version: str, warnings: list[str] | None = None) -> bytes:
    """The JSON of a body that should be of this kind; an empty `api_version` accepts any."""
    body = read_object_bytes(request.body, request.header("content-type"), warnings)
    try:
        found = _read_type(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unrecognized(
            body, kind, f"couldn't get version/kind; json parse error: {_json_problem(error)}"
        ) from None
    if found.kind not in ("", kind):
        group = found.api_version.rpartition("/")[0]
        version = found.api_version.rpartition("/")[2]
        package = "resource" if "resource.k8s.io" in api_version else api_version.partition(".")[0].partition("/")[0]
        raise BadRequest(
            f'{found.kind} in version "{version}" cannot be handled as a {kind}: converting '
            f"({version}.{found.kind}) to ({package or group}.{kind}): unknown conversion"
        )
    if api_version and found.api_version not in ("", api_version):
        raise BadRequest(
            f"the API version in the data ({found.api_version}) does not match the expected API version ({api_version})"
        )
    return body


def _unrecognized(body: bytes, kind: str, why: str) -> BadRequest:
    text = body.decode("utf-8", "replace")
    summary = text if len(text) <= _LONGEST_SUMMARY else f"{text[:_LONGEST_SUMMARY]} ..."
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({summary})")


def _json_problem(error: Exception) -> str:
    text = str(error)
    return "unexpected end of JSON input" if "truncated" in text else text


def _read_delete_body(request: ApiRequest) -> Json | None:
    if not request.body:
        return None
    body = decode_json(_read_typed(request, "DeleteOptions", ""))
    try:
        return fit_object(body, meta_type("DeleteOptions"), [])
    except DoesNotFit as error:
        raise BadRequest(f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {error}') from error


def _deleted_status(target: Target, deleted: Deleted) -> Json:
    details: Json = {"name": target.name, "group": target.row.group, "kind": target.row.plural}
    details["uid"] = deleted.record.obj["metadata"].get("uid", "")
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {name: value for name, value in details.items() if value},
    }


def _with_warnings(response: ApiResponse, warnings: Sequence[str]) -> ApiResponse:
    texts = [text for text in warnings if text]
    if not texts:
        return response
    headers = tuple(("Warning", _warning(text)) for text in dict.fromkeys(texts))
    return replace(response, headers=(*response.headers, *headers))


def _warning(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
