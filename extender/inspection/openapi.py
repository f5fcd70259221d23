"""The OpenAPI document of the extender: every path, its parameters, and its purpose."""

from importlib.metadata import version
from typing import Any, Final

from extender.inspection import access
from extender.inspection.leader_only import LEADER_HEADER
from extender.simulate.simulator import SimulateArguments
from extender.verbs.wire import BindArguments, FilterArguments, PreemptArguments
from service.bodies import Body

_PAGED: Final = ("limit", "after")
_GETS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("/healthz", "Whether the process is alive.", ()),
    ("/readyz", "Whether it is synced, and has recovered or stands by.", ()),
    ("/leader", "Whether this replica leads, and answers verbs.", ()),
    ("/metrics", "Metrics, for Prometheus.", ()),
    ("/openapi.json", "This document.", ()),
    (
        "/v1/nodes",
        "Nodes: leaf cells, CPU and memory, used and free, and which gangs hold them.",
        _PAGED,
    ),
    ("/v1/gangs", "Gangs that hold or reserve leaf cells.", _PAGED),
    ("/v1/gangs/{namespace}/{name}", "One gang, why it waits, and its other runs.", ()),
    ("/v1/leases", "Places that are held and not bound yet.", _PAGED),
    ("/v1/foreign", "Pods that use leaf cells and that Cellgate did not place.", _PAGED),
    ("/v1/waiting", "Gangs and pods that wait: why, how long, in which place.", _PAGED),
    (
        "/v1/queue",
        "Gangs that wait for cells or for quota, in their order: level, rank and what that adds up "
        "from, places in level and pool, the gang ahead. Callers without the right to read the "
        "whole queue get their own gangs. With `gang`, as `namespace/name`, each has "
        "`whatWouldChangeIt`: changes with which it starts earlier, found by planning them.",
        ("gang", "vc", "level", "user", "queue", *_PAGED),
    ),
    (
        "/v1/calendar",
        "Advance reservations and maintenance windows: times, nodes, slips, and the gangs that run "
        "on nodes of a window, with their expected ends. Callers without the right to read all get "
        "their own gangs.",
        (),
    ),
    (
        "/v1/windows",
        "The largest gangs that can start now, by VC and leaf type, guaranteed and opportunistic: "
        "members, leaf cells per member, and before which reservation they must end. Callers "
        "without the right to read all windows get those of the VCs that are open to them.",
        ("vc", "leafType", *_PAGED),
    ),
    ("/v1/vcs", "VCs: what was promised, what nodes back, and the state of the cells.", _PAGED),
    ("/v1/vcs/{vc}", "One VC.", ()),
    ("/v1/cells", "Physical cells, as trees.", _PAGED),
    (
        "/v1/runs",
        "Runs of gangs, the newest first: what was asked for, granted and used, and how they "
        "ended. Callers without the right to read all runs get their own.",
        ("user", "group", "vc", "gang", "outcome", "state", "since", "until", "members", *_PAGED),
    ),
    (
        "/v1/usage",
        "Leaf-cell-hours between two moments, summed by user, group, vc, class or leafType, as "
        "JSON or CSV. Callers without the right to read all runs get their own.",
        ("user", "group", "since", "until", "by", "format"),
    ),
    (
        "/v1/predictions",
        "How far predictions of run times and of starts were off, by key and size. Callers without "
        "the right to read all runs get the errors of their own.",
        ("since", "until"),
    ),
    (
        "/v1/limits",
        "What a user holds, and every limit that concerns the user: by default the caller. "
        "`groups`: those that only the API server knows, separated by commas. Callers without the "
        "right to read all limits get their own.",
        ("user", "groups"),
    ),
    ("/v1/decisions", "The decision log, newest first.", ("subject", *_PAGED)),
    (
        "/v1/explain/{namespace}/{pod}",
        "Why a pod, or a gang by its name, waits or runs where it runs; of a gang that waits for "
        "cells also `whatWouldChangeIt`.",
        (),
    ),
    ("/v1/inspect/affinitygroups", "HiveD: all affinity groups.", ()),
    ("/v1/inspect/affinitygroups/{name}", "HiveD: one affinity group.", ()),
    ("/v1/inspect/clusterstatus", "HiveD: physical and virtual clusters.", ()),
    ("/v1/inspect/clusterstatus/physicalcluster", "HiveD: the physical cluster.", ()),
    ("/v1/inspect/clusterstatus/virtualclusters", "HiveD: all virtual clusters.", ()),
    ("/v1/inspect/clusterstatus/virtualclusters/{vc}", "HiveD: one virtual cluster.", ()),
)
_POSTS: Final[tuple[tuple[str, str, type[Body]], ...]] = (
    (
        "/v1/extender/filter",
        "kube-scheduler: choose the nodes that a pod may use.",
        FilterArguments,
    ),
    ("/v1/extender/prioritize", "kube-scheduler: score nodes.", FilterArguments),
    (
        "/v1/extender/preempt",
        "kube-scheduler: choose the victims of a preemption.",
        PreemptArguments,
    ),
    ("/v1/extender/bind", "kube-scheduler: bind a pod to a node.", BindArguments),
    (
        "/v1/simulate",
        "What would happen to a pod if it were submitted now, and what would let it start earlier.",
        SimulateArguments,
    ),
)


def build_openapi() -> dict[str, Any]:
    """Build the document."""
    paths: dict[str, Any] = {}
    for path, about, query in _GETS:
        paths[path] = {"get": _operation(path, about) | _parameters(path, query)}
    for path, about, model in _POSTS:
        content = {"application/json": {"schema": model.model_json_schema()}}
        body = {"required": True, "content": content}
        paths[path] = {"post": _operation(path, about) | {"requestBody": body}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Cellgate extender",
            "version": version("cellgate"),
            "description": _CONVENTIONS,
        },
        "components": {"securitySchemes": _SCHEMES},
        "paths": paths,
    }


def _operation(path: str, about: str) -> dict[str, Any]:
    answers = {"200": {"description": "The answer."}}
    security = _security(path)
    if security:
        answers |= {status: {"description": why} for status, why in _REFUSALS.items()}
    if path.startswith("/v1/") and not path.startswith(access.VERBS):
        answers["503"] = {"description": f"Another replica leads; {LEADER_HEADER} names it."}
    return {"summary": about, "responses": answers, "security": security}


def _security(path: str) -> list[dict[str, list[str]]]:
    """Return what a caller needs if TLS is served; any one of the list is enough."""
    if path in access.OPEN:
        return []
    return [{"certificate": []}] if path.startswith(access.VERBS) else [*_READERS]


def _parameters(path: str, query: tuple[str, ...]) -> dict[str, Any]:
    in_path = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [
        *({"name": name, "in": "path", "required": True, "schema": _TEXT} for name in in_path),
        *({"name": name, "in": "query", "schema": _TEXT} for name in query),
    ]
    return {"parameters": parameters} if parameters else {}


_TEXT: Final = {"type": "string"}
_SCHEMES: Final = {
    "certificate": {"type": "mutualTLS", "description": "A client certificate of our CA."},
    "token": {"type": "http", "scheme": "bearer", "description": "A Kubernetes token."},
}
_CONVENTIONS: Final = (
    "Times are in UTC, to the second: 2026-03-01T12:00:00Z. The details of a decision are as they "
    "were recorded. The priority of a cell is that of its gang, in HiveD's numbers: 0 and more is "
    "guaranteed, -1 is opportunistic, -2 means that no gang uses the cell."
)
_READERS: Final[tuple[dict[str, list[str]], ...]] = ({"token": []}, {"certificate": []})
_REFUSALS: Final = {
    "401": "Credentials are missing or not valid.",
    "403": "The caller is known, but does not have this right.",
}
