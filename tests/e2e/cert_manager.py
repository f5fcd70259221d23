"""What cert-manager, its CA injector and a kubelet do with our manifests, in a few lines.

They follow what cert-manager documents: a Certificate becomes a Secret of the keys `tls.crt`,
`tls.key` and `ca.crt`; an annotation of a webhook configuration names the Certificate whose
`ca.crt` becomes the `caBundle` of all its webhooks; a mounted Secret is changed by one rename.
"""

import base64
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from certs.issuance import KeyPair, issue_ca, issue_client, issue_serving
from kube.api.webhook_configurations import GROUP, KINDS, NAME
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.support.installed.installation import NAMESPACE

_GROUP = "cert-manager.io"
_CERTIFICATES = f"/apis/{_GROUP}/v1/namespaces/{NAMESPACE}/certificates"
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_INJECT = f"{_GROUP}/inject-ca-from"


class CertManager:
    """Looks after the Certificates of our namespace, whenever it is told to."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._ca = issue_ca(now=datetime.now(UTC))

    async def define_kinds(self) -> None:
        """Let the API server take Issuers and Certificates."""
        for kind in ("Issuer", "Certificate"):
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            await self._plane.api.create(path, _definition(kind))
            await self._plane.api.wait_until(f"{path}/{kind.lower()}s.{_GROUP}", _is_established)

    def renew_ca(self) -> None:
        """Make another CA: what is issued next is of it."""
        self._ca = issue_ca(now=datetime.now(UTC))

    async def issue(self, name: str) -> JsonObject:
        """Issue a Certificate, for the first time or again; return its Secret."""
        certificate = await self._plane.api.get(f"{_CERTIFICATES}/{name}")
        pair = self._sign(certificate["spec"])
        files = {
            "tls.crt": pair.certificate,
            "tls.key": pair.key,
            "ca.crt": self._ca.certificate,
        }
        secret: JsonObject = {
            "metadata": {"name": certificate["spec"]["secretName"]},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(value).decode() for key, value in files.items()},
        }
        path = f"{_SECRETS}/{secret['metadata']['name']}"
        if await self._plane.api.exists(path):
            return await self._plane.api.patch(path, {"data": secret["data"]})
        return await self._plane.api.create(_SECRETS, secret)

    def _sign(self, spec: JsonObject) -> KeyPair:
        now, hosts = datetime.now(UTC), [*spec.get("dnsNames", ()), *spec.get("ipAddresses", ())]
        if "server auth" in spec["usages"]:
            return issue_serving(self._ca, hosts=hosts, now=now)
        return issue_client(self._ca, name=spec["commonName"], now=now)

    async def inject(self) -> None:
        """Publish the CA in our webhook configurations, as their annotations ask for it."""
        for kind in KINDS:
            path = f"{GROUP}/{kind}/{NAME}"
            configuration = await self._plane.api.get(path)
            namespace, _, name = configuration["metadata"]["annotations"][_INJECT].partition("/")
            assert namespace == NAMESPACE
            wanted = await self._plane.api.get(f"{_CERTIFICATES}/{name}")
            secret = await self._plane.api.get(f"{_SECRETS}/{wanted['spec']['secretName']}")
            for hook in configuration["webhooks"]:
                hook["clientConfig"]["caBundle"] = secret["data"]["ca.crt"]
            await self._plane.api.replace(path, configuration)


async def mount(plane: ControlPlane, deployment: str, directory: Path) -> None:
    """Show a pod of a Deployment its certificates, as a kubelet does: all change at once."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{deployment}"
    spec = (await plane.api.get(path))["spec"]["template"]["spec"]
    (volume,) = [one["secret"] for one in spec["volumes"] if one["name"] == "certs"]
    data = (await plane.api.get(f"{_SECRETS}/{volume['secretName']}"))["data"]
    directory.mkdir(exist_ok=True)
    version = directory / f"..{datetime.now(UTC).timestamp()}"
    version.mkdir()
    for item in volume["items"]:
        (version / item["path"]).write_bytes(base64.b64decode(data[item["key"]]))
        if not (directory / item["path"]).is_symlink():
            (directory / item["path"]).symlink_to(Path("..data") / item["path"])
    _turn(directory / "..data", version)


def _turn(link: Path, version: Path) -> None:
    old = link.resolve() if link.exists() else None
    fresh = link.with_name("..data_tmp")
    fresh.symlink_to(version.name)
    os.replace(fresh, link)
    if old is not None:
        shutil.rmtree(old)


def _definition(kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _is_established(definition: JsonObject) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()  # null at first
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
