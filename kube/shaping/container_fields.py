"""Fields of containers that shapes set: variables, command, working directory, mounts. Pure."""

from collections.abc import Mapping
from typing import Any

from kube.shaping.spec_draft import VOLUME_PREFIX, SpecDraft
from kube.values.objects import items
from policy.errors import Problem
from policy.shaping import Mount, Shape


def shape_containers(draft: SpecDraft, shape: Shape) -> None:
    """Set the fields of containers; debug containers get nothing."""
    for name, value in shape.env.items():
        _set_variable(draft, name, value)
    overrides: dict[str, list[str] | str | None] = {
        "command": list(shape.command),
        "args": list(shape.args),
        "workingDir": shape.working_dir,
    }
    for key, override in overrides.items():
        if override:
            _override(draft, key, override)
    for place, mount in enumerate(shape.mounts):
        _mount(draft, f"{VOLUME_PREFIX}{shape.name}-{place}", mount)


def _set_variable(draft: SpecDraft, name: str, value: str) -> None:
    if not draft.is_first("env", name):
        return
    wanted = {"name": name, "value": value}
    for container in draft.containers():
        present = items(container.get("env"))
        if all(one.get("name") != name for one in present):
            # First: the container's own variables may refer to it.
            container["env"] = [wanted, *present]
            draft.note(f"env {name}", is_new=True)
        elif any(one == wanted or (one == {"name": name} and not value) for one in present):
            draft.note(f"env {name}", is_new=False)


def _override(draft: SpecDraft, key: str, value: object) -> None:
    """Set a field of the first container, instead of its own."""
    main = draft.main()
    if main is None or not draft.is_first(key):
        return
    own = main.get(key)
    main[key] = value
    draft.note(f"{key} of container {main.get('name')}", is_new=own != value)
    if own and own != value:
        draft.warn(f"{key} of container {main.get('name')} instead of its own")


def _mount(draft: SpecDraft, name: str, mount: Mount) -> None:
    if not draft.is_first("mounts", mount.path):
        return
    wanted: dict[str, Any] = {"name": name, "mountPath": mount.path}
    if mount.sub_path:
        wanted["subPath"] = mount.sub_path_of(draft.user)
    if mount.is_read_only:
        wanted["readOnly"] = True
    _check_only_there(draft, wanted)
    takers = [taker for taker in draft.containers() if _may_mount(taker, wanted)]
    if not takers:
        return
    volume = {"name": name, **mount.source}
    others = [one for one in items(draft.spec.get("volumes")) if one.get("name") != name]
    is_new = False
    for taker in takers:
        mounts = items(taker.get("volumeMounts"))
        if wanted not in mounts:
            taker["volumeMounts"] = [*mounts, wanted]
            is_new = True
    draft.note(f"mount {mount.path} from {mount.origin}", is_new=is_new)
    draft.spec["volumes"] = [*others, volume]


def _check_only_there(draft: SpecDraft, wanted: Mapping[str, Any]) -> None:
    """With another mount, a container would see the parts of other users in the volume."""
    for container in draft.containers():
        for one in items(container.get("volumeMounts")):
            if one.get("name") == wanted["name"] and one != wanted:
                message = f"only shape {draft.shape} may mount volume {wanted['name']}"
                path = f"spec.containers[{container.get('name')}].volumeMounts"
                draft.problems.append(Problem(path, message))


def _may_mount(container: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether a container mounts nothing else at the path."""
    mounts = items(container.get("volumeMounts"))
    return all(one == wanted or one.get("mountPath") != wanted["mountPath"] for one in mounts)
