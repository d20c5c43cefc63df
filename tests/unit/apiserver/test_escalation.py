"""Rights can't be given away by those who don't have them."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.errors import Forbidden
from dray.api.meta import Json
from dray.apiserver.escalation import check_grant, find_uncovered
from dray.apiserver.rbac import Policy, RbacAuthorizer, Rule
from dray.apiserver.users import UserInfo

ALICE = UserInfo("alice", groups=("system:authenticated",))
READ_PODS = Rule(("get", "list"), ("",), ("pods",))


@pytest.mark.parametrize(
    ("held", "granted", "covered"),
    [
        ([READ_PODS], READ_PODS, True),
        ([READ_PODS], Rule(("get",), ("",), ("pods",), ("a",)), True),
        ([READ_PODS], Rule(("get", "delete"), ("",), ("pods",)), False),
        ([READ_PODS], Rule(("*",), ("",), ("pods",)), False),
        ([READ_PODS], Rule(("get",), ("*",), ("pods",)), False),
        ([Rule(("get",), ("",), ("pods",), ("a",))], Rule(("get",), ("",), ("pods",)), False),
        ([Rule(("get",), ("",), ("pods",)), Rule(("list",), ("",), ("pods",))], READ_PODS, True),
        ([Rule(("*",), ("*",), ("*",))], Rule(("get",), ("x",), ("y/z",)), True),
        ([Rule(("get",), ("",), ("*/status",))], Rule(("get",), ("",), ("pods/status",)), True),
        ([Rule(("get",), ("",), ("*/status",))], Rule(("get",), ("",), ("pods",)), False),
        ([Rule(("get",), urls=("/a/*",))], Rule(("get",), urls=("/a/b",)), True),
        ([Rule(("get",), urls=("/a/*",))], Rule(("get",), urls=("*",)), False),
    ],
)
def test_coverage(held: list[Rule], granted: Rule, covered: bool) -> None:
    assert (find_uncovered(held, [granted]) == []) is covered


def make_policy(*alices: Rule) -> Policy:
    policy = Policy()
    policy.note("clusterroles", "", "alices", {"metadata": {}, "rules": [rule.to_json() for rule in alices]})
    bound = {"roleRef": {"kind": "ClusterRole", "name": "alices"}, "subjects": [{"kind": "User", "name": "alice"}]}
    policy.note("clusterrolebindings", "", "alices", bound)
    everything = Rule(("*",), ("*",), ("*",))
    policy.note("clusterroles", "", "cluster-admin", {"metadata": {}, "rules": [everything.to_json()]})
    return policy


def check(policy: Policy, resource: str, obj: Json, old: Json | None = None, user: UserInfo = ALICE) -> None:
    check_grant(user, resource, obj, old, policy=policy, authorize=RbacAuthorizer(policy))


def make_role(*rules: Rule) -> Json:
    return {"metadata": {"name": "r", "namespace": "blue"}, "rules": [rule.to_json() for rule in rules]}


def make_binding(role: str, **more: Any) -> Json:
    return {"metadata": {"name": "b", "namespace": "blue"}, "roleRef": {"kind": "ClusterRole", "name": role}, **more}


def test_a_role_with_rights_that_one_has_is_fine() -> None:
    check(make_policy(READ_PODS), "roles", make_role(READ_PODS))


def test_a_role_with_more_is_refused_and_says_what_is_missing() -> None:
    with pytest.raises(Forbidden) as refused:
        check(make_policy(READ_PODS), "roles", make_role(READ_PODS, Rule(("delete",), ("",), ("nodes",))))
    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "alice" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["delete"]}'
    )


def test_an_update_that_leaves_the_rules_alone_is_fine() -> None:
    role = make_role(Rule(("delete",), ("",), ("nodes",)))
    check(make_policy(READ_PODS), "roles", role, old=role)


def test_binding_oneself_to_cluster_admin_is_refused() -> None:
    with pytest.raises(Forbidden):
        check(make_policy(READ_PODS), "rolebindings", make_binding("cluster-admin"))


@pytest.mark.parametrize("verb", ["bind", "escalate"])
def test_those_who_are_trusted_may(verb: str) -> None:
    policy = make_policy(Rule((verb,), ("rbac.authorization.k8s.io",), ("clusterroles", "roles")))
    if verb == "bind":
        check(policy, "rolebindings", make_binding("cluster-admin"))
    else:
        check(policy, "roles", make_role(READ_PODS))


def test_administrators_may() -> None:
    check(Policy(), "roles", make_role(READ_PODS), user=UserInfo("root", groups=("system:masters",)))
