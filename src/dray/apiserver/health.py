"""Is the server alive, is it ready: `/livez`, `/readyz`, `/healthz`, each check on its own as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dray.api.errors import NotFound
from dray.apiserver.requests import Query
from dray.apiserver.responses import ApiResponse

TEXT: Final = "text/plain; charset=utf-8"
ENDPOINTS: Final = ("healthz", "livez", "readyz")

Check = Callable[[], bool]


class Health:
    """`live` checks say whether a restart would help, `ready` ones whether requests should be sent here."""

    def __init__(self, *, live: Mapping[str, Check], ready: Mapping[str, Check]) -> None:
        everything = {**live, **ready}
        self._checks: dict[str, Mapping[str, Check]] = {"healthz": live, "livez": live, "readyz": everything}

    def respond(self, path: str, query: Query) -> ApiResponse:
        """Raises NotFound for a check that doesn't exist."""
        endpoint, _, name = path.strip("/").partition("/")
        checks = self._checks[endpoint]
        if name and name not in checks:
            raise NotFound(f"there is no health check {name!r}")
        asked = {name: checks[name]} if name else checks
        excluded = set(query.texts("exclude"))
        results = {check: run() for check, run in asked.items() if check not in excluded}
        healthy = all(results.values())
        if healthy and not query.flag("verbose"):
            return ApiResponse(200, b"ok", content_type=TEXT)
        lines = [f"[+]{check} ok" if passed else f"[-]{check} failed" for check, passed in results.items()]
        lines.append(f"{endpoint} check {'passed' if healthy else 'failed'}\n")
        return ApiResponse(200 if healthy else 500, "\n".join(lines).encode(), content_type=TEXT)
