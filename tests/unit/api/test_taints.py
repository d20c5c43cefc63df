from __future__ import annotations

import pytest

from dray.api.claims import DeviceToleration
from dray.api.devices import DeviceTaint
from dray.api.taints import Taint, Toleration, find_untolerated, matching_tolerations, tolerates

TAINT = Taint(key="gpu", value="broken", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="gpu", value="broken"), True),
        (Toleration(key="gpu", operator="Equal", value="other"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="gpu", operator="Almost", value="broken"), False),
    ],
)
def test_a_toleration_matches_by_key_value_and_effect(toleration: Toleration, tolerated: bool) -> None:
    assert tolerates(toleration, TAINT) is tolerated


def test_devices_follow_the_same_rules() -> None:
    taint = DeviceTaint(key="gpu", value="hot", effect="NoExecute")
    assert tolerates(DeviceToleration(key="gpu", operator="Exists"), taint)


def test_only_effects_that_keep_pods_away_count() -> None:
    hint = Taint(key="hint", effect="PreferNoSchedule")
    note = DeviceTaint(key="note", effect="None")
    assert find_untolerated([hint], []) is None
    assert find_untolerated([note], []) is None
    assert find_untolerated([hint, TAINT], []) == TAINT
    assert find_untolerated([TAINT], [Toleration(operator="Exists")]) is None


def test_all_matching_tolerations_are_found() -> None:
    tolerations = [Toleration(operator="Exists", toleration_seconds=5), Toleration(key="x", operator="Exists")]
    assert matching_tolerations(TAINT, tolerations) == tolerations[:1]
