"""Questions about permission and identity: objects that are answered, and never stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dray.api.errors import BadRequest
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.fitting import DoesNotFit, fit_object
from dray.apiserver.rbac import Rule
from dray.apiserver.schemas import type_of
from dray.apiserver.users import Attributes, Authorizer, Decision, UserInfo
from dray.validation.fields import Path, required

AUTHORIZATION: Final = "authorization.k8s.io"
AUTHENTICATION: Final = "authentication.k8s.io"


@dataclass(frozen=True, slots=True)
class ReviewKind:
    group: str
    plural: str
    kind: str
    namespaced: bool = False
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


REVIEWS: Final = (
    ReviewKind(AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    ReviewKind(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ReviewKind(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ReviewKind(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
    ReviewKind(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    ReviewKind(AUTHENTICATION, "tokenreviews", "TokenReview"),
)
_BY_PATH: Final = {(review.group, review.version, review.plural): review for review in REVIEWS}


def find_review(group: str, version: str, plural: str) -> ReviewKind | None:
    return _BY_PATH.get((group, version, plural))


class RuleSource(Protocol):
    def rules_for(self, user: UserInfo, namespace: str) -> list[Rule]: ...


AuthenticateToken = Callable[[str], Awaitable[UserInfo | None]]


@dataclass(frozen=True, slots=True)
class Reviewer:
    authorize: Authorizer
    rules: RuleSource | None = None
    authenticate_token: AuthenticateToken | None = None

    async def answer(self, review: ReviewKind, body: Json, namespace: str, user: UserInfo) -> Json:
        """The review with its status filled in. Raises BadRequest, Invalid."""
        try:
            fitted = fit_object(body, type_of(review.group, review.version, review.kind), [])
        except DoesNotFit as error:
            raise BadRequest(f'{review.kind} in version "v1" cannot be handled as a {review.kind}: {error}') from error
        spec = fitted.get("spec") or {}
        match review.kind:
            case "SelfSubjectAccessReview":
                status = self._access(review, spec, user, "")
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                status = self._access(review, spec, _subject(review, spec), namespace)
            case "SelfSubjectRulesReview":
                status = self._rules(spec, user)
            case "SelfSubjectReview":
                status = {"userInfo": _user_json(user)}
            case _:
                status = await self._token(spec)
        metadata = {name: value for name, value in (fitted.get("metadata") or {}).items() if name != "managedFields"}
        return {
            "kind": review.kind,
            "apiVersion": review.api_version,
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def _access(self, review: ReviewKind, spec: Json, user: UserInfo, namespace: str) -> Json:
        resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        other = other or {}
        if (resource is None) == (not other):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise refusals.invalid_object(
                review.kind, review.group, "", [required(Path("spec").child("resourceAttributes"), detail)]
            )
        if resource is not None:
            if namespace and resource.get("namespace") != namespace:
                raise BadRequest(
                    f"must match the namespace of the request: {resource.get('namespace', '')} != {namespace}"
                )
            asked = Attributes(
                user=user,
                verb=resource.get("verb", ""),
                group=resource.get("group", ""),
                version=resource.get("version", ""),
                resource=resource.get("resource", ""),
                subresource=resource.get("subresource", ""),
                namespace=resource.get("namespace", ""),
                name=resource.get("name", ""),
                field_selector=(resource.get("fieldSelector") or {}).get("rawSelector", ""),
                label_selector=(resource.get("labelSelector") or {}).get("rawSelector", ""),
            )
        else:
            asked = Attributes(user=user, verb=other.get("verb", ""), path=other.get("path", ""))
        decision: Decision = self.authorize(asked)
        status: Json = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status

    def _rules(self, spec: Json, user: UserInfo) -> Json:
        rules = [] if self.rules is None else self.rules.rules_for(user, spec.get("namespace", ""))
        resource_rules, other_rules = [], []
        for rule in rules:
            if rule.urls:
                other_rules.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)})
            else:
                entry: Json = {
                    "verbs": list(rule.verbs),
                    "apiGroups": list(rule.api_groups),
                    "resources": list(rule.resources),
                }
                if rule.resource_names:
                    entry["resourceNames"] = list(rule.resource_names)
                resource_rules.append(entry)
        return {"resourceRules": resource_rules, "nonResourceRules": other_rules, "incomplete": False}

    async def _token(self, spec: Json) -> Json:
        token = spec.get("token", "")
        user = None if self.authenticate_token is None else await self.authenticate_token(token)
        if user is None:
            return {"authenticated": False, "user": {}, "error": "the token is not valid"}
        return {"authenticated": True, "user": _user_json(user), "audiences": spec.get("audiences") or []}


def _subject(review: ReviewKind, spec: Json) -> UserInfo:
    if not spec.get("user") and not spec.get("groups"):
        raise refusals.invalid_object(
            review.kind,
            review.group,
            "",
            [required(Path("spec").child("user"), "at least one of user or group must be specified")],
        )
    extra: dict[str, Any] = spec.get("extra") or {}
    return UserInfo(
        spec.get("user", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra={name: tuple(values or ()) for name, values in extra.items()},
    )


def _user_json(user: UserInfo) -> Json:
    info: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return {name: value for name, value in info.items() if value}
