"""Nobody gives away rights that they don't have: checked when roles and bindings are written.

Those who hold the verb `escalate` on roles, or `bind` on the role that is bound, are trusted to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dray.api.errors import Forbidden
from dray.api.meta import Json
from dray.apiserver.rbac import MASTERS, Policy, Rule
from dray.apiserver.users import Attributes, Authorizer, UserInfo

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = {"roles", "clusterroles"}


def check_grant(
    user: UserInfo,
    resource: str,
    obj: Json,
    old: Json | None,
    *,
    policy: Policy,
    authorize: Authorizer,
) -> None:
    """Raises Forbidden if writing `obj` (one of the four kinds of RBAC) would give away more than `user` has."""
    if MASTERS in user.groups:
        return
    metadata = obj.get("metadata") or {}
    namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
    if resource in _ROLES:
        if old is not None and (obj.get("rules") or []) == (old.get("rules") or []):
            return
        granted = tuple(map(Rule.parse, obj.get("rules") or ()))
        trusted = Attributes(user, "escalate", RBAC_GROUP, "v1", resource, "", namespace, name)
    else:
        if old is not None and (obj.get("subjects"), obj.get("roleRef")) == (old.get("subjects"), old.get("roleRef")):
            return
        role = obj.get("roleRef") or {}
        plural = "roles" if role.get("kind") == "Role" else "clusterroles"
        role_name = role.get("name", "")
        granted = policy.role_rules(namespace, role_name) if plural == "roles" else policy.cluster_role_rules(role_name)
        trusted = Attributes(user, "bind", RBAC_GROUP, "v1", plural, "", namespace, role_name)
    if authorize(trusted).allowed:
        return
    missing = find_uncovered(policy.rules_for(user, namespace), granted)
    if missing:
        raise _refusal(user, resource, name, missing)


def find_uncovered(held: Sequence[Rule], granted: Iterable[Rule]) -> list[Rule]:
    """The rules among `granted` that aren't fully covered by those that are held."""
    return [rule for rule in granted if not all(any(_covers(one, part) for one in held) for part in _parts(rule))]


def _parts(rule: Rule) -> Iterator[Rule]:
    """The rule as rules with one verb, group, resource and name each."""
    for verb in rule.verbs:
        for url in rule.urls:
            yield Rule((verb,), urls=(url,))
        for group in rule.api_groups:
            for resource in rule.resources:
                if rule.resource_names:
                    for name in rule.resource_names:
                        yield Rule((verb,), (group,), (resource,), (name,))
                else:
                    yield Rule((verb,), (group,), (resource,))


def _covers(held: Rule, part: Rule) -> bool:
    if not _has(held.verbs, part.verbs[0]):
        return False
    if part.urls:
        url = part.urls[0]
        return any(_covers_url(pattern, url) for pattern in held.urls)
    resource, separator, subresource = part.resources[0].partition("/")
    has_resource = _has(held.resources, part.resources[0]) or (
        bool(separator) and resource != "*" and f"*/{subresource}" in held.resources
    )
    has_name = not held.resource_names or (bool(part.resource_names) and part.resource_names[0] in held.resource_names)
    return has_resource and has_name and _has(held.api_groups, part.api_groups[0])


def _covers_url(pattern: str, url: str) -> bool:
    return pattern in ("*", url) or (pattern.endswith("*") and url.startswith(pattern.rstrip("*")))


def _has(values: Sequence[str], value: str) -> bool:
    return value in values or "*" in values


def _refusal(user: UserInfo, resource: str, name: str, missing: Sequence[Rule]) -> Forbidden:
    groups = " ".join(f'"{group}"' for group in user.groups)
    lines = "\n".join(sorted(map(_format_rule, missing)))
    return Forbidden(
        f'{resource}.{RBAC_GROUP} "{name}" is forbidden: user "{user.name}" (groups=[{groups}]) is attempting to grant '
        f"RBAC permissions not currently held:\n{lines}",
        details={"name": name, "group": RBAC_GROUP, "kind": resource},
    )


def _format_rule(rule: Rule) -> str:
    fields = {
        "APIGroups": rule.api_groups,
        "Resources": rule.resources,
        "ResourceNames": rule.resource_names,
        "NonResourceURLs": rule.urls,
        "Verbs": rule.verbs,
    }
    shown = (f"{name}:[{_quoted(values)}]" for name, values in fields.items() if values)
    return "{" + ", ".join(shown) + "}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)
