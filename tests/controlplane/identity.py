"""Who may speak to the control plane: users, their tokens, their kubeconfigs.

Users come from a static token file, which the API server reads once: a user that a test needs must
be named before the start. Service accounts can be added at any time (`ControlPlane`).
"""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from tests.controlplane.api import JsonObject

TEST_USERS_ROLE = "test-user"


@dataclass(frozen=True, slots=True)
class User:
    """A user with groups; `may_use_workloads` binds it to the role of an ordinary cluster user."""

    name: str
    groups: tuple[str, ...] = ()
    may_use_workloads: bool = True
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False, compare=False)


ADMIN = User("admin", ("system:masters",), may_use_workloads=False)
SCHEDULER = User("system:kube-scheduler", may_use_workloads=False)
CONTROLLER_MANAGER = User("system:kube-controller-manager", may_use_workloads=False)
# kwok plays every kubelet: its own name, so that audits and webhooks can tell it from the admin.
KWOK_USER = User("kwok", ("system:masters",), may_use_workloads=False)
ALICE = User("alice", ("team-a",))
BOB = User("bob", ("team-b",))
SYSTEM_USERS = (ADMIN, SCHEDULER, CONTROLLER_MANAGER, KWOK_USER)


def format_token_file(users: tuple[User, ...]) -> str:
    """Lines of token, name, uid and quoted groups, as `--token-auth-file` wants them."""
    return "".join(
        f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in users
    )


def build_kubeconfig(*, server: str, ca_path: Path, token: str) -> bytes:
    """A kubeconfig for one token (JSON is YAML)."""
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": server, "certificate-authority": str(ca_path)},
                }
            ],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
    )


def build_user_role() -> JsonObject:
    """What an ordinary user may do: run workloads, look at nodes, nothing that makes an admin."""
    everything_on_objects = ["get", "list", "watch", "create", "update", "patch", "delete"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": TEST_USERS_ROLE},
        "rules": [
            {
                "apiGroups": ["", "apps", "batch", "policy"],
                "resources": _WORKLOAD_RESOURCES,
                "verbs": [*everything_on_objects, "deletecollection"],
            },
            {
                "apiGroups": ["", "scheduling.k8s.io"],
                "resources": ["nodes", "namespaces", "events", "priorityclasses"],
                "verbs": ["get", "list", "watch"],
            },
        ],
    }


_WORKLOAD_RESOURCES = [
    "pods",
    "services",
    "configmaps",
    "deployments",
    "deployments/scale",
    "replicasets",
    "statefulsets",
    "statefulsets/scale",
    "daemonsets",
    "jobs",
    "cronjobs",
    "poddisruptionbudgets",
]


def build_user_binding(users: tuple[User, ...]) -> JsonObject:
    """Bind the ordinary users by name, so that their groups stay exactly as declared."""
    api_group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api_group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": TEST_USERS_ROLE},
        "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": TEST_USERS_ROLE},
        "subjects": [
            {"apiGroup": api_group, "kind": "User", "name": user.name}
            for user in users
            if user.may_use_workloads
        ],
    }
