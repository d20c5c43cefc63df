"""What each kind does with an object before it is stored, and the rules that it checks it with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Generic, NamedTuple

from msgspec.structs import replace

from dray.api.claims import ADMIN_ACCESS_LABEL, DeviceRequest, ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate
from dray.api.classes import DeviceClass, DeviceClassSpec
from dray.api.meta import ObjectMeta
from dray.api.slices import ResourceSlice, ResourceSliceSpec
from dray.api.taintrules import DeviceTaintRule, DeviceTaintRuleStatus
from dray.validation.allocation import MAX_CONDITIONS, check_claim_status
from dray.validation.claim_rules import device_claim_rules
from dray.validation.claims import MAX_CONFIGS, check_device_claim, check_selectors, request_names
from dray.validation.configuration import check_configuration
from dray.validation.declarative import beta
from dray.validation.dropping import drop_claim_spec, drop_claim_status, drop_class_spec
from dray.validation.fields import (
    METADATA,
    SPEC,
    STATUS,
    Errors,
    Path,
    forbidden,
    invalid,
    mark_covered,
    too_many,
)
from dray.validation.lists import is_too_many
from dray.validation.metadata import (
    IMMUTABLE,
    check_conditions,
    check_finalizer_names,
    check_generated_object_meta,
    check_object_meta,
    check_object_meta_update,
    check_template_meta,
)
from dray.validation.names import (
    check_driver,
    check_label,
    check_pool,
    is_extended_resource_name,
    long_name_format,
)
from dray.validation.outcome import ObjectT, RequestContext, ResourceObject
from dray.validation.preparation import drop_deallocated_devices
from dray.validation.rendering import internal_form, quote
from dray.validation.slice_dropping import drop_slice_spec
from dray.validation.slice_rules import class_rules, slice_beta_rules, slice_standard_rules, taint_rules
from dray.validation.slices import check_slice
from dray.validation.status_rules import claim_status_rules
from dray.validation.statusauthz import check_status_access
from dray.validation.tolerations import check_taint

_NO_ADMIN: Final = (
    f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
)


class Findings(NamedTuple):
    """Errors of the two kinds of rules; `dray.validation.declarative` says how they meet."""

    handwritten: Errors
    declarative: Errors


class Strategy(ABC, Generic[ObjectT]):
    """The part of writing an object that differs between kinds."""

    namespaced: ClassVar[bool] = False
    resource: ClassVar[str]
    judges_all_meta: ClassVar[bool] = True
    """Whether the kind's rules for new objects include the general ones for metadata."""
    judges_meta_again: ClassVar[bool] = False
    """Whether an update judges all metadata, not only what changed."""

    @abstractmethod
    def prepare_create(self, obj: ObjectT, context: RequestContext) -> ObjectT: ...

    @abstractmethod
    def check_create(self, obj: ObjectT, context: RequestContext) -> Findings: ...

    @abstractmethod
    def prepare_update(self, obj: ObjectT, old: ObjectT, context: RequestContext) -> ObjectT: ...

    @abstractmethod
    def check_update(self, obj: ObjectT, old: ObjectT, context: RequestContext) -> Findings: ...

    def prepare_status(self, obj: ObjectT, old: ObjectT, context: RequestContext) -> ObjectT:
        raise AssertionError(f"{self.resource} have no status")

    def check_status(self, obj: ObjectT, old: ObjectT, context: RequestContext) -> Findings:
        raise AssertionError(f"{self.resource} have no status")

    def allows_unconditional_update(self, version: str) -> bool:
        """Whether an update without resourceVersion overwrites whatever is stored."""
        return True

    def warnings(self, obj: ObjectT) -> list[str]:
        return []

    def check_meta(self, meta: ObjectMeta, errors: Errors) -> None:
        check_object_meta(meta, METADATA, errors, namespaced=self.namespaced)
        check_finalizer_names(meta.finalizers, METADATA.child("finalizers"), errors)

    def check_meta_update(self, meta: ObjectMeta, old: ObjectMeta, errors: Errors) -> None:
        check_object_meta_update(meta, old, METADATA, errors)
        check_finalizer_names(meta.finalizers, METADATA.child("finalizers"), errors)


class ClaimStrategy(Strategy[ResourceClaim]):
    namespaced = True
    resource = "resourceclaims"
    judges_meta_again = True

    def prepare_create(self, obj: ResourceClaim, context: RequestContext) -> ResourceClaim:
        return replace(obj, spec=drop_claim_spec(obj.spec, None, context.gates), status=ResourceClaimStatus())

    def check_create(self, obj: ResourceClaim, context: RequestContext) -> Findings:
        found = Findings([], [])
        _check_admin_access(obj.spec.devices.requests, context, found.handwritten)
        self.check_meta(obj.metadata, found.handwritten)
        check_device_claim(obj.spec.devices, SPEC.child("devices"), found.handwritten, context.gates)
        device_claim_rules(obj.spec.devices, None, SPEC.child("devices"), found.declarative)
        return found

    def prepare_update(self, obj: ResourceClaim, old: ResourceClaim, context: RequestContext) -> ResourceClaim:
        return replace(obj, spec=drop_claim_spec(obj.spec, old.spec, context.gates), status=old.status)

    def check_update(self, obj: ResourceClaim, old: ResourceClaim, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta(obj.metadata, found.handwritten)
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        if obj.spec != old.spec:
            shown = internal_form(obj.spec)
            found.handwritten.extend(mark_covered([invalid(SPEC, shown, IMMUTABLE, origin="immutable")]))
            found.declarative.extend(beta([invalid(SPEC, None, IMMUTABLE, origin="immutable")]))
        return found

    def prepare_status(self, obj: ResourceClaim, old: ResourceClaim, context: RequestContext) -> ResourceClaim:
        dropped = drop_claim_status(obj, old, context.gates)
        return drop_deallocated_devices(dropped, old, context.gates)

    def check_status(self, obj: ResourceClaim, old: ResourceClaim, context: RequestContext) -> Findings:
        found = Findings([], [])
        _check_granted_admin_access(obj, old, context, found.handwritten)
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        check_claim_status(
            obj.status,
            old.status,
            STATUS,
            found.handwritten,
            names=request_names(obj.spec.devices),
            being_deleted=obj.metadata.deletion_timestamp is not None,
        )
        if context.requester is not None and "DRAResourceClaimGranularStatusAuthorization" in context.gates:
            namespace = obj.metadata.namespace
            check_status_access(obj.status, old.status, found.handwritten, context.requester, namespace)
        claim_status_rules(obj.status, old.status, STATUS, found.declarative)
        return found


class TemplateStrategy(Strategy[ResourceClaimTemplate]):
    namespaced = True
    resource = "resourceclaimtemplates"
    judges_meta_again = True

    def prepare_create(self, obj: ResourceClaimTemplate, context: RequestContext) -> ResourceClaimTemplate:
        return replace(obj, spec=replace(obj.spec, spec=drop_claim_spec(obj.spec.spec, None, context.gates)))

    def check_create(self, obj: ResourceClaimTemplate, context: RequestContext) -> Findings:
        found = self._check(obj, context)
        _check_admin_access(obj.spec.spec.devices.requests, context, found.handwritten)
        device_claim_rules(obj.spec.spec.devices, None, SPEC.child("spec", "devices"), found.declarative)
        return found

    def prepare_update(
        self, obj: ResourceClaimTemplate, old: ResourceClaimTemplate, context: RequestContext
    ) -> ResourceClaimTemplate:
        return replace(obj, spec=replace(obj.spec, spec=drop_claim_spec(obj.spec.spec, old.spec.spec, context.gates)))

    def check_update(self, obj: ResourceClaimTemplate, old: ResourceClaimTemplate, context: RequestContext) -> Findings:
        found = self._check(obj, context)
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        if obj.spec != old.spec:
            found.handwritten.append(invalid(SPEC, internal_form(obj.spec), IMMUTABLE))
        claim, stored = obj.spec.spec.devices, old.spec.spec.devices
        device_claim_rules(claim, stored, SPEC.child("spec", "devices"), found.declarative)
        return found

    def _check(self, obj: ResourceClaimTemplate, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta(obj.metadata, found.handwritten)
        check_template_meta(obj.spec.metadata, SPEC.child("metadata"), found.handwritten)
        place = SPEC.child("spec", "devices")
        check_device_claim(obj.spec.spec.devices, place, found.handwritten, context.gates)
        return found


class SliceStrategy(Strategy[ResourceSlice]):
    resource = "resourceslices"

    def prepare_create(self, obj: ResourceSlice, context: RequestContext) -> ResourceSlice:
        meta = replace(obj.metadata, generation=1)
        return replace(obj, metadata=meta, spec=drop_slice_spec(obj.spec, None, context.gates))

    def check_create(self, obj: ResourceSlice, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta(obj.metadata, found.handwritten)
        self._check(obj.spec, None, context, found)
        return found

    def prepare_update(self, obj: ResourceSlice, old: ResourceSlice, context: RequestContext) -> ResourceSlice:
        # Compared before disabled fields are dropped, as Kubernetes does.
        meta = _next_generation(obj.metadata, old.metadata, changed=obj.spec != old.spec)
        return replace(obj, metadata=meta, spec=drop_slice_spec(obj.spec, old.spec, context.gates))

    def check_update(self, obj: ResourceSlice, old: ResourceSlice, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        self._check(obj.spec, old.spec, context, found)
        return found

    def _check(
        self, spec: ResourceSliceSpec, old: ResourceSliceSpec | None, context: RequestContext, found: Findings
    ) -> None:
        check_slice(spec, old, SPEC, found.handwritten, context.gates)
        if old is not None or found.handwritten:
            slice_beta_rules(spec, old, SPEC, found.declarative)
        slice_standard_rules(spec, old, SPEC, found.declarative, context.gates)

    def warnings(self, obj: ResourceSlice) -> list[str]:
        driver = obj.spec.driver
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"]


class ClassStrategy(Strategy[DeviceClass]):
    resource = "deviceclasses"
    judges_all_meta = False

    def prepare_create(self, obj: DeviceClass, context: RequestContext) -> DeviceClass:
        meta = replace(obj.metadata, generation=1)
        return replace(obj, metadata=meta, spec=drop_class_spec(obj.spec, None, context.gates))

    def check_create(self, obj: DeviceClass, context: RequestContext) -> Findings:
        return self._check(obj, None, context)

    def prepare_update(self, obj: DeviceClass, old: DeviceClass, context: RequestContext) -> DeviceClass:
        spec = drop_class_spec(obj.spec, old.spec, context.gates)
        return replace(obj, metadata=_next_generation(obj.metadata, old.metadata, changed=spec != old.spec), spec=spec)

    def check_update(self, obj: DeviceClass, old: DeviceClass, context: RequestContext) -> Findings:
        found = self._check(obj, old, context)
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        return found

    def _check(self, obj: DeviceClass, old: DeviceClass | None, context: RequestContext) -> Findings:
        found = Findings([], [])
        check_generated_object_meta(obj.metadata, METADATA, found.handwritten, name_rule=_covered_long_name)
        check_finalizer_names(obj.metadata.finalizers, METADATA.child("finalizers"), found.handwritten)
        stored = old.spec if old is not None else None
        _check_class(obj.spec, stored, SPEC, found.handwritten, context)
        if obj.metadata.name and (old is None or obj.metadata.name != old.metadata.name):
            found.declarative.extend(beta(long_name_format(obj.metadata.name, METADATA.child("name"))))
        class_rules(obj.spec, stored, SPEC, found.declarative)
        return found


class TaintRuleStrategy(Strategy[DeviceTaintRule]):
    resource = "devicetaintrules"

    def allows_unconditional_update(self, version: str) -> bool:
        return version in ("v1alpha3", "v1beta2")

    def prepare_create(self, obj: DeviceTaintRule, context: RequestContext) -> DeviceTaintRule:
        return replace(obj, metadata=replace(obj.metadata, generation=1), status=DeviceTaintRuleStatus())

    def check_create(self, obj: DeviceTaintRule, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta(obj.metadata, found.handwritten)
        self._check(obj, None, found)
        return found

    def prepare_update(self, obj: DeviceTaintRule, old: DeviceTaintRule, context: RequestContext) -> DeviceTaintRule:
        spec = obj.spec
        taint, stored = spec.taint, old.spec.taint
        if taint.effect != stored.effect and taint.time_added == stored.time_added:
            # The time says since when there is this effect; a client may set it, but need not.
            spec = replace(spec, taint=replace(taint, time_added=context.now))
        meta = _next_generation(obj.metadata, old.metadata, changed=spec != old.spec)
        return replace(obj, metadata=meta, spec=spec, status=old.status)

    def check_update(self, obj: DeviceTaintRule, old: DeviceTaintRule, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        self._check(obj, old, found)
        return found

    def prepare_status(self, obj: DeviceTaintRule, old: DeviceTaintRule, context: RequestContext) -> DeviceTaintRule:
        return obj

    def check_status(self, obj: DeviceTaintRule, old: DeviceTaintRule, context: RequestContext) -> Findings:
        found = Findings([], [])
        self.check_meta_update(obj.metadata, old.metadata, found.handwritten)
        place = STATUS.child("conditions")
        check_conditions(obj.status.conditions, place, found.handwritten)
        if (count := len(obj.status.conditions)) > MAX_CONDITIONS:
            found.handwritten.append(too_many(place, count, MAX_CONDITIONS))
        return found

    def _check(self, obj: DeviceTaintRule, old: DeviceTaintRule | None, found: Findings) -> None:
        if (selector := obj.spec.device_selector) is not None:
            place = SPEC.child("deviceSelector")
            if selector.driver is not None:
                check_driver(selector.driver, place.child("driver"), found.handwritten)
            if selector.pool is not None:
                check_pool(selector.pool, place.child("pool"), found.handwritten)
            if selector.device is not None:
                check_label(selector.device, place.child("device"), found.handwritten)
        stored = old.spec.taint if old is not None else None
        old_effect = stored.effect if stored is not None else None
        check_taint(obj.spec.taint, SPEC.child("taint"), found.handwritten, old_effect=old_effect)
        found.declarative.extend(beta(taint_rules(obj.spec.taint, stored, SPEC.child("taint"))))


STRATEGIES: Final[dict[type[ResourceObject], Strategy[Any]]] = {
    ResourceClaim: ClaimStrategy(),
    ResourceClaimTemplate: TemplateStrategy(),
    ResourceSlice: SliceStrategy(),
    DeviceClass: ClassStrategy(),
    DeviceTaintRule: TaintRuleStrategy(),
}


def _next_generation(meta: ObjectMeta, old: ObjectMeta, *, changed: bool) -> ObjectMeta:
    return replace(meta, generation=old.generation + 1) if changed else meta


def _covered_long_name(name: str, path: Path) -> Errors:
    return mark_covered(long_name_format(name, path))


def _check_class(
    spec: DeviceClassSpec, old: DeviceClassSpec | None, path: Path, errors: Errors, context: RequestContext
) -> None:
    """Lists that didn't change are taken as they are; any change makes all of their items new."""
    stored = old is not None and spec.selectors == old.selectors
    check_selectors(spec.selectors, path.child("selectors"), errors, context.gates, stored=stored)
    stored = old is not None and spec.config == old.config
    place = path.child("config")
    if not is_too_many(spec.config, MAX_CONFIGS, place, errors, covered=True):
        for position, config in enumerate(spec.config):
            check_configuration(config.opaque, place.index(position), errors, stored=stored)
    name = spec.extended_resource_name
    if name is not None and not is_extended_resource_name(name):
        place = path.child("extendedResourceName")
        error = invalid(
            place, name, "must be a valid extended resource name", origin="format=k8s-extended-resource-name"
        )
        errors += mark_covered([error])


def _check_admin_access(requests: tuple[DeviceRequest, ...], context: RequestContext, errors: Errors) -> None:
    """The first request for admin access is reported. Its path is the same for claims, templates and all versions."""
    if context.namespace_labels.get(ADMIN_ACCESS_LABEL) == "true":
        return
    for position, request in enumerate(requests):
        if request.exactly is not None and request.exactly.admin_access:
            place = SPEC.child("devices", "requests").index(position).child("adminAccess")
            errors.append(forbidden(place, _NO_ADMIN))
            return


def _check_granted_admin_access(
    claim: ResourceClaim, old: ResourceClaim, context: RequestContext, errors: Errors
) -> None:
    """Asked once, when an allocation with admin access is written."""
    if context.namespace_labels.get(ADMIN_ACCESS_LABEL) == "true" or _granted_admin_access(old) is not None:
        return
    if (position := _granted_admin_access(claim)) is not None:
        place = STATUS.child("allocation", "devices", "results").index(position).child("adminAccess")
        errors.append(forbidden(place, _NO_ADMIN))


def _granted_admin_access(claim: ResourceClaim) -> int | None:
    results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
    return next((position for position, result in enumerate(results) if result.admin_access), None)
