"""The three ways to write a resource.k8s.io object: create, update, update of the status.

Each prepares the object (drops fields of disabled features, sets what is the server's to set), checks it with all
rules, and returns what would be stored. Nothing is stored here, and nothing is asked beyond what is handed in.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.validation.declarative import merge
from dray.validation.fields import METADATA, Errors, invalid
from dray.validation.kinds import STRATEGIES, Findings, Strategy
from dray.validation.metadata import check_object_meta, check_object_meta_update, path_segment_name
from dray.validation.outcome import ObjectT, Outcome, RequestContext
from dray.validation.preparation import keep_system_fields, reset_for_status, resolve_namespace, wipe_system_fields


def create(obj: ObjectT, context: RequestContext) -> Outcome[ObjectT]:
    """A name must have been generated, where one was asked for; uid and creationTimestamp are filled in afterwards.

    Raises BadRequest if the namespaces of object and request differ.
    """
    strategy: Strategy[ObjectT] = STRATEGIES[type(obj)]
    meta = resolve_namespace(obj.metadata, context.namespace if strategy.namespaced else "")
    prepared = strategy.prepare_create(replace(obj, metadata=wipe_system_fields(meta)), context)
    errors = merge(*strategy.check_create(prepared, context), context.version)
    if not errors and not strategy.judges_all_meta:
        # General rules for metadata only speak up when those of the kind are content.
        namespaced = strategy.namespaced
        check_object_meta(prepared.metadata, METADATA, errors, namespaced=namespaced, name_rule=path_segment_name)
    return _outcome(strategy, prepared, errors)


def update(obj: ObjectT, old: ObjectT, context: RequestContext) -> Outcome[ObjectT]:
    """Raises BadRequest if the namespaces of object and request differ."""
    strategy: Strategy[ObjectT] = STRATEGIES[type(obj)]
    if (refused := _refuse_unconditional(strategy, obj, context)) is not None:
        return refused
    prepared = strategy.prepare_update(_adopt(strategy, obj, old, context), old, context)
    prepared = replace(prepared, metadata=keep_system_fields(prepared.metadata, old.metadata))
    found = strategy.check_update(prepared, old, context)
    return _updated(strategy, prepared, old, found, context, meta_is_judged=strategy.judges_meta_again)


def update_status(obj: ObjectT, old: ObjectT, context: RequestContext) -> Outcome[ObjectT]:
    """For claims and taint rules, the kinds with a status. Raises BadRequest as `update` does."""
    strategy: Strategy[ObjectT] = STRATEGIES[type(obj)]
    if (refused := _refuse_unconditional(strategy, obj, context)) is not None:
        return refused
    adopted = _adopt(strategy, obj, old, context)
    adopted = replace(adopted, metadata=reset_for_status(adopted.metadata, old.metadata), spec=old.spec)
    prepared = strategy.prepare_status(adopted, old, context)
    prepared = replace(prepared, metadata=keep_system_fields(prepared.metadata, old.metadata))
    found = strategy.check_status(prepared, old, context)
    return _updated(strategy, prepared, old, found, context, meta_is_judged=False)


def _refuse_unconditional(
    strategy: Strategy[ObjectT], obj: ObjectT, context: RequestContext
) -> Outcome[ObjectT] | None:
    """The store of some kinds wants to know which version of the object is replaced."""
    if obj.metadata.resource_version or strategy.allows_unconditional_update(context.version):
        return None
    error = invalid(METADATA.child("resourceVersion"), 0, "must be specified for an update")
    return Outcome(obj, [error], kind=strategy.resource)


def _adopt(strategy: Strategy[ObjectT], obj: ObjectT, old: ObjectT, context: RequestContext) -> ObjectT:
    """The new object as the successor of the stored one."""
    meta = resolve_namespace(obj.metadata, context.namespace if strategy.namespaced else "")
    version = meta.resource_version or old.metadata.resource_version
    return replace(obj, metadata=replace(meta, resource_version=version, generation=old.metadata.generation))


def _updated(
    strategy: Strategy[ObjectT],
    prepared: ObjectT,
    old: ObjectT,
    found: Findings,
    context: RequestContext,
    *,
    meta_is_judged: bool,
) -> Outcome[ObjectT]:
    """The general rules for metadata are a part of the kind's own: where those are content, so are these."""
    common: Errors = []
    if found.handwritten or not meta_is_judged:
        namespaced = strategy.namespaced
        check_object_meta(prepared.metadata, METADATA, common, namespaced=namespaced, name_rule=path_segment_name)
    if found.handwritten:
        check_object_meta_update(prepared.metadata, old.metadata, METADATA, common)
    errors = merge(common + found.handwritten, found.declarative, context.version)
    return _outcome(strategy, prepared, errors)


def _outcome(strategy: Strategy[ObjectT], prepared: ObjectT, errors: Errors) -> Outcome[ObjectT]:
    if errors:
        return Outcome(prepared, errors)
    return Outcome(prepared, warnings=strategy.warnings(prepared))
