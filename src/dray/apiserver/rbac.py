"""Role-based access control: rules, roles and bindings, as Kubernetes evaluates them.

`Policy` holds the four kinds of rbac.authorization.k8s.io in the form in which they are asked: bindings by subject.
It is fed with objects as they change; `dray.apiserver.policy_watch` does that from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from dray.api.labels import InvalidSelector, LabelSelector, Selector, compile_label_selector
from dray.api.meta import Json
from dray.apiserver.users import Attributes, Decision, UserInfo

SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
MASTERS: Final = "system:masters"


@dataclass(frozen=True, slots=True)
class Rule:
    """What may be done to what. An empty list matches nothing; `*` matches everything."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    """Empty: all names."""
    urls: tuple[str, ...] = ()

    @classmethod
    def parse(cls, rule: Json) -> Rule:
        return cls(
            verbs=tuple(rule.get("verbs") or ()),
            api_groups=tuple(rule.get("apiGroups") or ()),
            resources=tuple(rule.get("resources") or ()),
            resource_names=tuple(rule.get("resourceNames") or ()),
            urls=tuple(rule.get("nonResourceURLs") or ()),
        )

    def to_json(self) -> Json:
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.api_groups,
            "resources": self.resources,
            "resourceNames": self.resource_names,
            "nonResourceURLs": self.urls,
        }
        return {name: list(values) for name, values in fields.items() if values}

    def allows(self, asked: Attributes) -> bool:
        if asked.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not asked.is_resource_request:
            return any(_matches_path(url, asked.path) for url in self.urls)
        return (
            (asked.group in self.api_groups or "*" in self.api_groups)
            and self._has_resource(asked.resource, asked.subresource)
            and (not self.resource_names or asked.name in self.resource_names)
        )

    def _has_resource(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources


class Subject(NamedTuple):
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}/{self.namespace}"' if self.namespace else f'{self.kind} "{self.name}"'


class Binding(NamedTuple):
    """Gives a role to subjects, everywhere or in one namespace."""

    name: str
    namespace: str
    role_kind: str
    role: str
    subjects: tuple[Subject, ...]

    def __str__(self) -> str:
        if self.namespace:
            return f'RoleBinding "{self.name}/{self.namespace}"'
        return f'ClusterRoleBinding "{self.name}"'


class _ClusterRole(NamedTuple):
    rules: tuple[Rule, ...]
    labels: Mapping[str, str]
    aggregates: tuple[Selector, ...]


class Policy:
    """All roles and bindings."""

    def __init__(self) -> None:
        self._cluster_roles: dict[str, _ClusterRole] = {}
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}
        self._bindings: dict[tuple[str, str], Binding] = {}
        self._by_subject: dict[tuple[str, Subject], dict[str, Binding]] = {}
        """Bindings by name, per (namespace, subject); the empty namespace has the cluster-wide ones."""
        self._aggregated: dict[str, tuple[Rule, ...]] = {}

    def note(self, resource: str, namespace: str, name: str, obj: Json | None) -> None:
        """Takes note of an object as it is now; None: it is gone. `resource` is the plural, e.g. `rolebindings`."""
        match resource:
            case "clusterroles":
                self._aggregated.clear()
                if obj is None:
                    self._cluster_roles.pop(name, None)
                else:
                    self._cluster_roles[name] = _parse_cluster_role(obj)
            case "roles":
                if obj is None:
                    self._roles.pop((namespace, name), None)
                else:
                    self._roles[namespace, name] = _parse_rules(obj)
            case "clusterrolebindings" | "rolebindings":
                self._unbind(namespace, name)
                if obj is not None:
                    self._bind(_parse_binding(namespace, name, obj))

    def bindings(self, user: UserInfo, namespace: str) -> Iterator[tuple[Binding, Subject]]:
        """Who gives `user` something in `namespace`: cluster-wide first, then those of the namespace."""
        subjects = list(_subjects_of(user))
        for scope in ("", namespace) if namespace else ("",):
            for subject in subjects:
                for binding in self._by_subject.get((scope, subject), {}).values():
                    yield binding, subject

    def rules_of(self, binding: Binding) -> tuple[Rule, ...]:
        """Of the role that is bound; nothing if it doesn't exist."""
        if binding.role_kind == "Role":
            return self._roles.get((binding.namespace, binding.role), ())
        return self.cluster_role_rules(binding.role)

    def role_rules(self, namespace: str, name: str) -> tuple[Rule, ...]:
        return self._roles.get((namespace, name), ())

    def cluster_role_rules(self, name: str) -> tuple[Rule, ...]:
        """Its own rules and those of the roles that it aggregates."""
        if name not in self._aggregated:
            self._aggregated[name] = tuple(dict.fromkeys(self._collect(name, set())))
        return self._aggregated[name]

    def rules_for(self, user: UserInfo, namespace: str) -> list[Rule]:
        """Everything that `user` may do in `namespace` by RBAC."""
        return [rule for binding, _ in self.bindings(user, namespace) for rule in self.rules_of(binding)]

    def _collect(self, name: str, seen: set[str]) -> Iterator[Rule]:
        role = self._cluster_roles.get(name)
        if role is None or name in seen:
            return
        seen.add(name)
        yield from role.rules
        for other_name, other in self._cluster_roles.items():
            if any(selector.matches(other.labels) for selector in role.aggregates):
                yield from self._collect(other_name, seen)

    def _bind(self, binding: Binding) -> None:
        self._bindings[binding.namespace, binding.name] = binding
        for subject in binding.subjects:
            self._by_subject.setdefault((binding.namespace, subject), {})[binding.name] = binding

    def _unbind(self, namespace: str, name: str) -> None:
        binding = self._bindings.pop((namespace, name), None)
        for subject in set() if binding is None else set(binding.subjects):
            bound = self._by_subject[namespace, subject]
            del bound[name]
            if not bound:
                del self._by_subject[namespace, subject]


class RbacAuthorizer:
    """Answers from a `Policy`. The group system:masters may do everything, whatever the roles say."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __call__(self, asked: Attributes) -> Decision:
        if MASTERS in asked.user.groups:
            return Decision(True)
        for binding, subject in self._policy.bindings(asked.user, asked.namespace):
            for rule in self._policy.rules_of(binding):
                if rule.allows(asked):
                    role = f'{binding.role_kind} "{binding.role}"'
                    return Decision(True, f"RBAC: allowed by {binding} of {role} to {subject}")
        return Decision(False)


def _subjects_of(user: UserInfo) -> Iterator[Subject]:
    yield Subject("User", user.name)
    for group in user.groups:
        yield Subject("Group", group)
    if user.name.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace, _, name = user.name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
        yield Subject("ServiceAccount", name, namespace)


def _matches_path(pattern: str, path: str) -> bool:
    if pattern == "*" or pattern == path:
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


def _parse_rules(obj: Json) -> tuple[Rule, ...]:
    return tuple(map(Rule.parse, obj.get("rules") or ()))


def _parse_cluster_role(obj: Json) -> _ClusterRole:
    selectors: Any = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    compiled = []
    for selector in msgspec.convert(selectors, tuple[LabelSelector, ...]):
        try:
            compiled.append(compile_label_selector(selector))
        except InvalidSelector:  # selects no role, so grants nothing
            continue
    return _ClusterRole(_parse_rules(obj), obj["metadata"].get("labels") or {}, tuple(compiled))


def _parse_binding(namespace: str, name: str, obj: Json) -> Binding:
    role = obj.get("roleRef") or {}
    subjects = tuple(
        Subject(
            subject.get("kind", ""),
            subject.get("name", ""),
            (subject.get("namespace") or namespace) if subject.get("kind") == "ServiceAccount" else "",
        )
        for subject in obj.get("subjects") or ()
    )
    return Binding(name, namespace, role.get("kind", ""), role.get("name", ""), subjects)
