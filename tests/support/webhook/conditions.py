"""The match conditions of our manifests, evaluated as an API server evaluates them."""

from pathlib import Path
from typing import Any

import yaml

import manifests
from simulation.admission.webhooks import is_met
from simulation.objects.patch import json_patch

_FOLDER = Path(manifests.__file__).parent
_TEXT = (_FOLDER / "base" / "webhooks.yaml").read_text()
_HOOKS: dict[tuple[str, str], dict[str, Any]] = {
    (one["kind"].removesuffix("WebhookConfiguration"), hook["name"].partition(".")[0]): hook
    for one in yaml.safe_load_all(_TEXT)
    for hook in one["webhooks"]
}


def hook_of(kind: str, name: str) -> dict[str, Any]:
    """One of our webhooks: `Mutating` or `Validating`, and the first part of its name."""
    return _HOOKS[kind, name]


def fail_open_guard() -> dict[str, Any]:
    """The guard of pods as the fail-open overlay has it."""
    overlay = yaml.safe_load(
        (_FOLDER / "overlays" / "fail-open" / "kustomization.yaml").read_text()
    )
    hooks = [hook for (kind, _), hook in _HOOKS.items() if kind == "Validating"]
    (patch,) = [one["patch"] for one in overlay["patches"] if "target" in one]
    patched = json_patch({"webhooks": hooks}, yaml.safe_load(patch))["webhooks"]
    return next(hook for hook in patched if hook["name"] == "pods.cellgate.io")


def is_asked(
    hook: dict[str, Any],
    obj: dict[str, Any],
    *,
    old: dict[str, Any] | None = None,
    user: str = "alice",
    groups: tuple[str, ...] = (),
    subresource: str = "",
) -> bool:
    """Whether the API server asks us about a creation, or a change of what was `old`."""
    request = {
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": user, "groups": list(groups)},
        **({"subResource": subresource} if subresource else {}),
    }
    known = {"request": request, "object": obj, "oldObject": old}
    return all(is_met(one["expression"], known) for one in hook.get("matchConditions", ()))
