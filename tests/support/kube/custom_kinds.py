"""CustomResourceDefinitions of other projects' workloads without a schema: any object is stored."""

from dataclasses import dataclass
from typing import Any, Final

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A kind that a cluster has once its operator is installed."""

    api_version: str
    kind: str
    plural: str
    templates: tuple[str, ...] = ()
    """Where its pod templates are, as the Identity document says it."""

    @property
    def group(self) -> str:
        """Its API group."""
        return self.api_version.split("/")[0]

    def path(self, namespace: str) -> str:
        """Where the API server keeps objects of this kind."""
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"

    def definition(self) -> dict[str, Any]:
        """The CustomResourceDefinition."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": self.api_version.split("/")[1],
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        names = {"kind": self.kind, "plural": self.plural, "singular": self.kind.lower()}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            # Some of these groups belong to Kubernetes' own projects and need an approval.
            "metadata": {
                "name": f"{self.plural}.{self.group}",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
            },
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": names,
                "versions": [version],
            },
        }

    def identity_templates(self) -> list[dict[str, str]]:
        """What an Identity document lists under `templates` for it."""
        return [
            {"apiVersion": self.api_version, "kind": self.kind, "path": path}
            for path in self.templates
        ]


PYTORCH_JOB: Final = CustomKind(
    "kubeflow.org/v1", "PyTorchJob", "pytorchjobs", ("spec.pytorchReplicaSpecs.*.template",)
)
MPI_JOB: Final = CustomKind(
    "kubeflow.org/v2beta1", "MPIJob", "mpijobs", ("spec.mpiReplicaSpecs.*.template",)
)
JOB_SET: Final = CustomKind(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    "jobsets",
    ("spec.replicatedJobs.*.template.spec.template",),
)
LEADER_WORKER_SET: Final = CustomKind(
    "leaderworkerset.x-k8s.io/v1",
    "LeaderWorkerSet",
    "leaderworkersets",
    ("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"),
)
OPERATED: Final = (PYTORCH_JOB, MPI_JOB, JOB_SET, LEADER_WORKER_SET)
"""Kinds whose pods an operator creates."""
PROVISIONING_REQUEST: Final = CustomKind(
    "autoscaling.x-k8s.io/v1", "ProvisioningRequest", "provisioningrequests"
)
