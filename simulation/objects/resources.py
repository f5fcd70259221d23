"""The kinds of objects that are served, and their paths."""

from collections.abc import Sequence
from dataclasses import dataclass

from simulation.objects.status import not_served


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object, and how its storage differs from other kinds."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    has_status: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False
    """A deletion returns the object, not a Status."""
    fields: tuple[str, ...] = ()
    """Field selectors in addition to metadata.name and metadata.namespace."""

    @property
    def api_version(self) -> str:
        """As written in objects: `v1`, `scheduling.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As written in messages: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a URL path; without a name it is a collection."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_POD_FIELDS = ("spec.nodeName", "spec.schedulerName", "status.phase", "status.nominatedNodeName")
_EVENT_FIELDS = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid")),
    *("reason", "type"),
)
_REGISTRATION = "admissionregistration.k8s.io"

PODS = Resource(
    plural="pods", kind="Pod", has_status=True, returns_deleted=True, fields=_POD_FIELDS
)
NODES = Resource(plural="nodes", kind="Node", namespaced=False, has_status=True)
NAMESPACES = Resource(
    plural="namespaces", kind="Namespace", namespaced=False, has_status=True, returns_deleted=True
)
CONFIG_MAPS = Resource(plural="configmaps", kind="ConfigMap")
SECRETS = Resource(plural="secrets", kind="Secret", fields=("type",))
SERVICES = Resource(plural="services", kind="Service", has_status=True, returns_deleted=True)
EVENTS = Resource(plural="events", kind="Event", fields=_EVENT_FIELDS)
NEW_EVENTS = Resource(plural="events", kind="Event", group="events.k8s.io")
PRIORITY_CLASSES = Resource(
    plural="priorityclasses", kind="PriorityClass", group="scheduling.k8s.io", namespaced=False
)
LEASES = Resource(
    plural="leases", kind="Lease", group="coordination.k8s.io", unconditional_update=False
)
MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS = (
    Resource(
        plural=f"{kind.lower()}s",
        kind=kind,
        group=_REGISTRATION,
        namespaced=False,
        unconditional_update=False,
    )
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)

_CORE = (PODS, NODES, NAMESPACES, CONFIG_MAPS, SECRETS, SERVICES, EVENTS)
_OTHER = (NEW_EVENTS, PRIORITY_CLASSES, LEASES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_BY_PATH = {(one.group, one.version, one.plural): one for one in (*_CORE, *_OTHER)}


def parse_path(path: str) -> Target:
    """Return the target of a path like `/api/v1/namespaces/NS/pods/NAME/status`, or raise 404."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return _parse_rest("", version, rest)
        case ["apis", group, version, *rest]:
            return _parse_rest(group, version, rest)
    raise not_served()


def _parse_rest(group: str, version: str, rest: Sequence[str]) -> Target:
    match rest:
        case ["namespaces", namespace, plural, *names] if (group, version, plural) in _BY_PATH:
            return _target(_BY_PATH[group, version, plural], names, namespace=namespace)
        case [plural, *names] if (group, version, plural) in _BY_PATH:
            return _target(_BY_PATH[group, version, plural], names)
    raise not_served()


def _target(resource: Resource, names: Sequence[str], *, namespace: str = "") -> Target:
    """Refuse a path with the wrong scope; only a collection may span namespaces."""
    wrong_scope = bool(namespace) != resource.namespaced and bool(namespace or names)
    name, subresource, *surplus = [*names, "", ""]
    known = {"": True, "status": resource.has_status, "binding": resource is PODS}
    if wrong_scope or any(surplus) or not known.get(subresource):
        raise not_served()
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)
