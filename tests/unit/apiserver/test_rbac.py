"""Roles and bindings."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.meta import Json
from dray.apiserver.default_roles import ANONYMOUS, iter_default_bindings, iter_default_roles
from dray.apiserver.rbac import Policy, RbacAuthorizer, Rule
from dray.apiserver.users import Attributes, UserInfo

ALICE = UserInfo("alice", groups=("team-a", "system:authenticated"))


def asked(verb: str, resource: str, **more: Any) -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(more.pop("user", ALICE), verb, resource=resource, subresource=subresource, **more)


def role(*rules: Rule, **more: Any) -> Json:
    return {"metadata": {"labels": more.pop("labels", {})}, "rules": [rule.to_json() for rule in rules], **more}


def binding(role_name: str, *subjects: Json, kind: str = "ClusterRole") -> Json:
    return {"roleRef": {"kind": kind, "name": role_name}, "subjects": list(subjects)}


def alice() -> Json:
    return {"kind": "User", "name": "alice"}


@pytest.mark.parametrize(
    ("rule", "request_", "allowed"),
    [
        (Rule(("get",), ("",), ("pods",)), asked("get", "pods"), True),
        (Rule(("get",), ("",), ("pods",)), asked("list", "pods"), False),
        (Rule(("get",), ("",), ("pods",)), asked("get", "pods/status"), False),
        (Rule(("get",), ("",), ("pods/status",)), asked("get", "pods/status"), True),
        (Rule(("get",), ("",), ("*/status",)), asked("get", "pods/status"), True),
        (Rule(("get",), ("",), ("*/status",)), asked("get", "pods"), False),
        (Rule(("*",), ("*",), ("*",)), asked("get", "pods/log", group="any"), True),
        (Rule(("get",), ("batch",), ("pods",)), asked("get", "pods"), False),
        (Rule(("get",), ("",), ("pods",), ("a",)), asked("get", "pods", name="a"), True),
        (Rule(("get",), ("",), ("pods",), ("a",)), asked("get", "pods", name="b"), False),
        (Rule(("list",), ("",), ("pods",), ("a",)), asked("list", "pods"), False),
        (Rule(("*",), ("*",), ("*",)), Attributes(ALICE, "get", path="/metrics"), False),
        (Rule(("get",), urls=("/metrics",)), Attributes(ALICE, "get", path="/metrics"), True),
        (Rule(("get",), urls=("/metrics",)), Attributes(ALICE, "get", path="/metrics/x"), False),
        (Rule(("get",), urls=("/openapi/*",)), Attributes(ALICE, "get", path="/openapi/v3"), True),
        (Rule(("get",), urls=("*",)), Attributes(ALICE, "get", path="/openapi/v3"), True),
        (Rule(("get",), urls=("*",)), asked("get", "pods"), False),
    ],
)
def test_a_rule_allows_what_it_says(rule: Rule, request_: Attributes, allowed: bool) -> None:
    assert rule.allows(request_) is allowed


def test_a_cluster_role_bound_in_a_namespace_counts_there_only() -> None:
    policy = Policy()
    policy.note("clusterroles", "", "reader", role(Rule(("get",), ("",), ("pods",))))
    policy.note("rolebindings", "blue", "b", binding("reader", alice()))
    authorize = RbacAuthorizer(policy)
    assert authorize(asked("get", "pods", namespace="blue")).allowed
    assert not authorize(asked("get", "pods", namespace="red")).allowed
    assert not authorize(asked("get", "pods")).allowed


def test_a_role_of_one_namespace_is_not_found_from_another() -> None:
    policy = Policy()
    policy.note("roles", "blue", "reader", role(Rule(("get",), ("",), ("pods",))))
    policy.note("rolebindings", "red", "b", binding("reader", alice(), kind="Role"))
    assert not RbacAuthorizer(policy)(asked("get", "pods", namespace="red")).allowed


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        ({"kind": "Group", "name": "team-a"}, ALICE),
        ({"kind": "ServiceAccount", "name": "bot", "namespace": "ci"}, UserInfo("system:serviceaccount:ci:bot")),
        ({"kind": "User", "name": "system:serviceaccount:ci:bot"}, UserInfo("system:serviceaccount:ci:bot")),
    ],
)
def test_subjects_are_users_groups_and_service_accounts(subject: Json, user: UserInfo) -> None:
    policy = Policy()
    policy.note("clusterroles", "", "reader", role(Rule(("get",), ("",), ("pods",))))
    policy.note("clusterrolebindings", "", "b", binding("reader", subject))
    authorize = RbacAuthorizer(policy)
    decision = authorize(asked("get", "pods", user=user))
    assert decision.allowed
    assert decision.reason.startswith('RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to ')
    assert not authorize(asked("get", "pods", user=UserInfo("mallory"))).allowed


def test_taking_back_a_binding_or_a_role_takes_back_the_right() -> None:
    policy = Policy()
    authorize = RbacAuthorizer(policy)
    request = asked("get", "pods")
    policy.note("clusterroles", "", "reader", role(Rule(("get",), ("",), ("pods",))))
    policy.note("clusterrolebindings", "", "b", binding("reader", alice(), alice()))
    assert authorize(request).allowed
    policy.note("clusterrolebindings", "", "b", binding("reader", {"kind": "User", "name": "bob"}))
    assert not authorize(request).allowed
    policy.note("clusterrolebindings", "", "b", binding("reader", alice()))
    policy.note("clusterroles", "", "reader", None)
    assert not authorize(request).allowed
    policy.note("clusterrolebindings", "", "b", None)
    policy.note("clusterrolebindings", "", "b", None)
    assert not authorize(request).allowed


def test_roles_aggregate_others_by_label_and_cycles_do_no_harm() -> None:
    policy = Policy()
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "top"}}]}
    policy.note("clusterroles", "", "top", role(labels={"to": "top"}, aggregationRule=selector))
    policy.note("clusterrolebindings", "", "b", binding("top", alice()))
    authorize = RbacAuthorizer(policy)
    assert not authorize(asked("get", "pods")).allowed
    policy.note("clusterroles", "", "part", role(Rule(("get",), ("",), ("pods",)), labels={"to": "top"}))
    assert authorize(asked("get", "pods")).allowed


@pytest.fixture
def defaults() -> RbacAuthorizer:
    policy = Policy()
    for obj in iter_default_roles():
        policy.note("clusterroles", "", obj["metadata"]["name"], obj)
    for obj in iter_default_bindings():
        policy.note("clusterrolebindings", "", obj["metadata"]["name"], obj)
    policy.note("rolebindings", "blue", "editors", binding("edit", alice()))
    return RbacAuthorizer(policy)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_anonymous_gets_health_and_version(defaults: RbacAuthorizer, path: str) -> None:
    assert defaults(Attributes(ANONYMOUS, "get", path=path)).allowed


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/openapi/v3", "/metrics", "/livez/store"])
def test_anonymous_gets_nothing_else(defaults: RbacAuthorizer, path: str) -> None:
    assert not defaults(Attributes(ANONYMOUS, "get", path=path)).allowed
    assert not defaults(asked("list", "pods", user=ANONYMOUS)).allowed
    assert not defaults(
        asked("create", "selfsubjectaccessreviews", user=ANONYMOUS, group="authorization.k8s.io")
    ).allowed


def test_the_scheduler_binds_and_allocates_but_does_not_make_nodes(defaults: RbacAuthorizer) -> None:
    scheduler = UserInfo("system:kube-scheduler", groups=("system:authenticated",))
    resource = "resource.k8s.io"
    assert defaults(asked("create", "pods/binding", user=scheduler, namespace="blue")).allowed
    assert defaults(asked("update", "resourceclaims/status", user=scheduler, group=resource, namespace="a")).allowed
    assert defaults(asked("update", "resourceclaims/binding", user=scheduler, group=resource)).allowed
    assert not defaults(asked("create", "nodes", user=scheduler)).allowed
    assert not defaults(asked("get", "secrets", user=scheduler, namespace="blue")).allowed


def test_editors_edit_claims_in_their_namespace_but_neither_status_nor_roles(defaults: RbacAuthorizer) -> None:
    group = "resource.k8s.io"
    assert defaults(asked("create", "resourceclaims", group=group, namespace="blue")).allowed
    assert defaults(asked("list", "pods", namespace="blue")).allowed
    assert not defaults(asked("create", "resourceclaims", group=group, namespace="red")).allowed
    assert not defaults(asked("update", "resourceclaims/status", group=group, namespace="blue")).allowed
    assert not defaults(asked("create", "rolebindings", group="rbac.authorization.k8s.io", namespace="blue")).allowed


def test_masters_may_do_everything_even_without_roles() -> None:
    admin = UserInfo("root", groups=("system:masters",))
    assert RbacAuthorizer(Policy())(asked("delete", "nodes", user=admin)).allowed
