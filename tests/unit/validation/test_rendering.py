from __future__ import annotations

from dray.api.claims import CELDeviceConstraint, DeviceConstraint, ResourceClaimTemplateSpec
from dray.api.devices import CounterSet, DeviceAttribute, SharedDeviceID
from dray.api.meta import ObjectMeta
from dray.validation.rendering import JsonText, internal_form, render_value
from tests.unit.validation.builders import make_claim, make_slice


def test_the_internal_form_has_go_names_and_leaves_nothing_out() -> None:
    assert render_value(internal_form(DeviceAttribute(int_value=1))) == (
        '{"IntValue":1,"BoolValue":null,"StringValue":null,"VersionValue":null,'
        '"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}'
    )


def test_identities_are_shown_by_their_fields() -> None:
    shown = render_value(internal_form(SharedDeviceID("d", "p", "gpu", "")))
    assert shown == '{"Driver":"d","Pool":"p","Device":"gpu","ShareID":""}'


def test_metadata_of_a_template_stands_beside_its_spec() -> None:
    spec = ResourceClaimTemplateSpec(metadata=ObjectMeta(labels={"a": "b"}))
    assert render_value(internal_form(spec)).startswith('{"labels":{"a":"b"},"Spec":{"Devices":')


def test_fields_that_kubernetes_does_not_have_show_only_when_set() -> None:
    plain, ours = DeviceConstraint(), DeviceConstraint(cel=CELDeviceConstraint(expression="true"))
    assert "CEL" not in internal_form(plain)
    assert internal_form(ours)["CEL"] == {"Expression": "true"}


def test_maps_are_shown_in_the_order_of_their_keys() -> None:
    spec = make_slice(
        devices=None, sharedCounters=[{"name": "set", "counters": {"b": {"value": "1"}, "a": {"value": "2"}}}]
    ).spec
    assert isinstance(spec.shared_counters[0], CounterSet)
    shown = '{"name":"set","counters":{"a":{"value":"2"},"b":{"value":"1"}}}'
    assert render_value(spec.shared_counters[0]) == shown


def test_an_absent_list_that_kubernetes_writes_is_null() -> None:
    claim = make_claim(status={"devices": [{"driver": "d", "pool": "p", "device": "x"}]})
    shown = '{"driver":"d","pool":"p","device":"x","conditions":null}'
    assert render_value(claim.status.devices[0]) == shown


def test_texts_of_own_types_are_shown_as_json() -> None:
    assert render_value("<") == '"<"'
    assert render_value(JsonText("<")) == r'"\u003c"'
