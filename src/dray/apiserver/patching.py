"""Patches of all four types: the patched object goes through the same gate as an update."""

from __future__ import annotations

from typing import Any, Final, assert_never

from dray.api.errors import BadRequest, Invalid
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.apply import apply_configuration
from dray.apiserver.fieldsets import fields_of
from dray.apiserver.json_patch import apply_json_patch
from dray.apiserver.managed_fields import UPDATE, Manager, ManagerKey, Managers, managed_part
from dray.apiserver.merge_patch import apply_merge_patch
from dray.apiserver.options import WriteOptions
from dray.apiserver.records import Record, decode_json, encode_json
from dray.apiserver.registry import Proposal, Registry, Step
from dray.apiserver.schemas import type_of
from dray.apiserver.strategic_merge import apply_strategic_merge
from dray.apiserver.strategies import Live
from dray.apiserver.targets import Caller, Target, Written
from dray.runtime.client import PatchType

_BEFORE_FIRST_APPLY: Final = "before-first-apply"


async def patch_object(
    registry: Registry,
    target: Target,
    patch_type: PatchType,
    patch: Any,
    options: WriteOptions,
    caller: Caller,
) -> Written:
    """`patch` is the decoded body, an object or, for JSON patches, a list."""
    refusals.check_name(target.name)
    if patch_type is PatchType.APPLY:
        return await _apply(registry, target, patch, options, caller)
    warnings: list[str] = []
    step = patch_step(registry, target, patch_type, patch, options, warnings)
    written = await registry.modify((step,), options, caller, verb="patch")
    return written._replace(warnings=[*warnings, *written.warnings])


def patch_step(
    registry: Registry, target: Target, patch_type: PatchType, patch: Any, options: WriteOptions, warnings: list[str]
) -> Step:
    """A patch of any type but apply, as a step of a write. It leaves its warnings in the list."""

    def propose(old: Record) -> Proposal:
        warnings.clear()
        live = old.to_json(target.version)
        patched = _patched(live, patch, patch_type, target)
        return _propose(registry, target, patched, live, options, warnings, old)

    return Step(target, propose)


def _patched(live: Json, patch: Any, patch_type: PatchType, target: Target) -> Json:
    match patch_type:
        case PatchType.JSON:
            patched = apply_json_patch(decode_json(encode_json(live)), patch)
        case PatchType.MERGE:
            patched = apply_merge_patch(live, patch)
        case PatchType.STRATEGIC:
            schema = type_of(target.row.group, target.version, target.row.kind)
            patched = apply_strategic_merge(live, patch, schema)
        case PatchType.APPLY:
            raise AssertionError("handled by _apply")
        case _:
            assert_never(patch_type)
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata", {}), dict):
        raise Invalid("the server rejected our request due to an error in our request", details={})
    return patched


def _propose(
    registry: Registry,
    target: Target,
    patched: Json,
    live: Json,
    options: WriteOptions,
    warnings: list[str],
    old: Record,
    managers: Managers | None = None,
) -> Proposal:
    _check_type(target, patched)
    metadata = patched.get("metadata") or {}
    decoded = registry.decode(target, patched, registry.now(), options, warnings, Live(old, live))
    if metadata.get("resourceVersion") == str(old.revision):
        # Not the patch but the live object brought it, so it is no condition.
        metadata = {**metadata, "resourceVersion": ""}
    return Proposal(decoded, metadata, managers)


def _check_type(target: Target, obj: Json) -> None:
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if kind != target.row.kind or api_version != target.api_version:
        version = str(api_version).rpartition("/")[2]
        raise BadRequest(
            f'{kind} in version "{version}" cannot be handled as a {target.row.kind}: '
            f'no kind "{kind}" is registered for version "{api_version}"'
        )


async def _apply(registry: Registry, target: Target, config: Any, options: WriteOptions, caller: Caller) -> Written:
    if not isinstance(config, dict):
        raise BadRequest("error decoding YAML: the configuration must be an object")
    _check_configuration(target, config)
    entry = await registry.store.get(target.key)
    if entry is None:
        if target.subresource:
            raise refusals.not_found(target.row, target.name)
        return await _apply_new(registry, target, config, options, caller)
    warnings: list[str] = []

    def propose(old: Record) -> Proposal:
        warnings.clear()
        live = old.to_json(target.version)
        managers = old.managers or _owner_before_apply(target, live)
        writer = registry.writer(target, options, caller)
        merged, managers = apply_configuration(
            live,
            {**config, "metadata": _without_revision(config["metadata"])},
            managers,
            writer,
            registry.convert(target),
            force=options.force,
            reset=registry.reset_fields(target),
        )
        proposal = _propose(registry, target, merged, live, options, warnings, old, managers)
        # A revision in the configuration is a condition, and so is a uid.
        return proposal._replace(metadata=config["metadata"])

    written = await registry.modify((Step(target, propose),), options, caller, verb="patch", entry=entry)
    return written._replace(warnings=[*warnings, *written.warnings])


async def _apply_new(
    registry: Registry, target: Target, config: Json, options: WriteOptions, caller: Caller
) -> Written:
    """Applying what doesn't exist creates it. The applier owns what it listed, and nothing of the defaults."""
    metadata = config["metadata"]
    if metadata.get("uid"):
        raise refusals.conflict(
            target.row, target.name, "uid mismatch: the provided object specified uid " + str(metadata["uid"])
        )
    if metadata.get("resourceVersion"):
        raise refusals.not_found(target.row, target.name)
    writer = registry.writer(target, options, caller)
    _, managers = apply_configuration(
        {},
        config,
        {},
        writer,
        registry.convert(target),
        force=options.force,
        reset=registry.reset_fields(target),
    )
    return await registry.create(target, config, options, caller, managers=managers)


def _check_configuration(target: Target, config: Json) -> None:
    _check_type(target, config)
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise BadRequest("error decoding YAML: metadata must be an object")
    if metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    name = metadata.setdefault("name", target.name)
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if target.namespace:
        namespace = metadata.setdefault("namespace", target.namespace)
        if namespace != target.namespace:
            raise BadRequest(
                f"the namespace of the object ({namespace}) does not match the namespace on the URL "
                f"({target.namespace})"
            )


def _without_revision(metadata: Json) -> Json:
    return {name: value for name, value in metadata.items() if name not in ("resourceVersion", "uid")}


def _owner_before_apply(target: Target, live: Json) -> Managers:
    """Whoever made an object without leaving a trace counts as one manager."""
    schema = type_of(target.row.group, target.version, target.row.kind)
    key = ManagerKey(_BEFORE_FIRST_APPLY, UPDATE, target.api_version, "")
    return {key: Manager(key, target.api_version, "", managed_part(fields_of(live, schema)))}
