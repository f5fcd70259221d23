"""Fields of a whole pod that shapes set: nodes, tolerations, secrets, account, run time. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kube.shaping.spec_draft import SpecDraft
from kube.values.objects import items, mapping
from policy.errors import Problem
from policy.shaping import Shape
from policy.wording import quote

_DEFAULT_ACCOUNT: Final = "default"


def shape_pod_fields(draft: SpecDraft, shape: Shape) -> None:
    """Set the fields of the pod itself."""
    _select_nodes(draft, shape.node_selector)
    _append(draft, "tolerations", shape.tolerations)
    secrets = [{"name": name} for name in shape.pull_secrets_of(draft.user)]
    _append(draft, "imagePullSecrets", secrets)
    if shape.service_account_name is not None:
        _set_account(draft, shape.service_account_name)


def _select_nodes(draft: SpecDraft, wanted: Mapping[str, str]) -> None:
    for key, value in wanted.items():
        if not draft.is_first("nodeSelector", key):
            continue
        selector = mapping(draft.spec.get("nodeSelector"))
        if selector.get(key, value) != value:
            own = f"is {quote(str(selector[key]))}, but shape {draft.shape}"
            message = f"{own} requires {quote(value)}; leave it out"
            draft.problems.append(Problem(f"spec.nodeSelector[{key}]", message))
            continue
        draft.note(f"nodeSelector {key}={value}", is_new=key not in selector)
        draft.spec["nodeSelector"] = {**selector, key: value}


def _append(draft: SpecDraft, name: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    for one in wanted:
        present = items(draft.spec.get(name))
        draft.note(f"{name} {_show(one)}", is_new=one not in present)
        if one not in present:
            draft.spec[name] = [*present, dict(one)]


def _set_account(draft: SpecDraft, name: str) -> None:
    """Set the service account; Kubernetes then mounts its token instead of the other one's."""
    if not draft.is_first("serviceAccountName"):
        return
    own = draft.spec.get("serviceAccountName") or draft.spec.get("serviceAccount")
    draft.note(f"serviceAccountName {name}", is_new=own != name)
    draft.spec["serviceAccountName"] = name
    if "serviceAccount" in draft.spec:  # the old name of the field
        draft.spec["serviceAccount"] = name
    if own not in (None, "", _DEFAULT_ACCOUNT, name):
        draft.warn(f"serviceAccountName {name} instead of the requested {quote(str(own))}")


def limit_run_time(draft: SpecDraft, seconds: int) -> None:
    """Let a pod run for so long at most."""
    own = draft.spec.get("activeDeadlineSeconds")
    is_new = not isinstance(own, int) or own > seconds
    if is_new:
        draft.spec["activeDeadlineSeconds"] = seconds
    if draft.spec["activeDeadlineSeconds"] == seconds:
        draft.note(f"activeDeadlineSeconds {seconds}", is_new=is_new)
    if is_new and own is not None and own == draft.before.get("activeDeadlineSeconds"):
        draft.warn(f"activeDeadlineSeconds {seconds} instead of the requested {own}")


def _show(value: Mapping[str, Any]) -> str:
    """Write a small mapping on one line."""
    return " ".join(f"{key}={part}" for key, part in value.items())
