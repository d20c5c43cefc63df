"""Acting as somebody else (`kubectl --as`), for those who may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from dray.api.errors import Forbidden, InternalError
from dray.apiserver.authorization import forbidden
from dray.apiserver.default_roles import ANONYMOUS, UNAUTHENTICATED
from dray.apiserver.rbac import SERVICE_ACCOUNT_PREFIX
from dray.apiserver.tokens import AUTHENTICATED
from dray.apiserver.users import Attributes, Authorizer, UserInfo

_PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"


def impersonate(user: UserInfo, headers: Iterable[tuple[str, str]], authorize: Authorizer) -> UserInfo:
    """Who the request counts as. Raises Forbidden if `user` may not be all of that."""
    asked = [(name, value) for name, value in headers if name.startswith(_PREFIX)]
    if not asked:
        return user
    target = _target(asked)
    for attributes in _checks(user, target):
        decision = authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)
    return _with_implied_groups(target)


def _target(headers: list[tuple[str, str]]) -> UserInfo:
    extra: dict[str, tuple[str, ...]] = {}
    name, uid = "", ""
    groups: list[str] = []
    for header, value in headers:
        match header:
            case "impersonate-user":
                name = value
            case "impersonate-uid":
                uid = value
            case "impersonate-group":
                groups.append(value)
            case _ if header.startswith(_EXTRA):
                key = unquote(header.removeprefix(_EXTRA)).lower()
                extra[key] = (*extra.get(key, ()), value)
            case _:
                raise Forbidden(f"forbidden: unknown header {header}")
    if not name:
        raise InternalError("Internal error occurred: requested to impersonate groups, uid or extra without a user")
    return UserInfo(name, uid=uid, groups=tuple(groups), extra=extra)


def _checks(user: UserInfo, target: UserInfo) -> Iterator[Attributes]:
    asked = Attributes(user=user, verb="impersonate", version="v1")
    account = _service_account(target.name)
    if account is not None:
        yield replace(asked, resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield replace(asked, resource="users", name=target.name)
    for group in target.groups:
        yield replace(asked, resource="groups", name=group)
    if target.uid:
        yield replace(asked, group=_GROUP, resource="uids", name=target.uid)
    for key, values in target.extra.items():
        for value in values:
            yield replace(asked, group=_GROUP, resource="userextras", subresource=key, name=value)


def _with_implied_groups(target: UserInfo) -> UserInfo:
    if target.name == ANONYMOUS.name:
        return replace(target, groups=target.groups or (UNAUTHENTICATED,))
    groups = target.groups
    account = _service_account(target.name)
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    if AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return replace(target, groups=groups)


def _service_account(name: str) -> tuple[str, str] | None:
    if not name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, separator, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    return (namespace, account) if separator and namespace and account else None
