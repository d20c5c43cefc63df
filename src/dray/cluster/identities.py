"""Who the components of a local cluster are to the API server: as in a real one, none of them is an administrator."""

from __future__ import annotations

from dray.apiserver.tokens import CONTROLLERS_USER, SCHEDULER_USER
from dray.apiserver.users import UserInfo

AUTHENTICATED = "system:authenticated"
DRIVER_NAMESPACE = "dray-system"

SCHEDULER = UserInfo(SCHEDULER_USER, groups=(AUTHENTICATED,))
CONTROLLERS = UserInfo(CONTROLLERS_USER, groups=(AUTHENTICATED,))


def node_identity(name: str) -> UserInfo:
    return UserInfo(f"system:node:{name}", groups=("system:nodes", AUTHENTICATED))


def driver_identity(driver: str, node_name: str = "") -> UserInfo:
    """A service account; one that runs on a node carries the node's name in its token."""
    return UserInfo(
        f"system:serviceaccount:{DRIVER_NAMESPACE}:{driver.replace('.', '-')}",
        groups=("system:serviceaccounts", f"system:serviceaccounts:{DRIVER_NAMESPACE}", AUTHENTICATED),
        extra={"authentication.kubernetes.io/node-name": (node_name,)} if node_name else {},
    )
