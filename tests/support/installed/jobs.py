"""Jobs of users for the end-to-end tests."""

from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload


async def submit_job(plane: ControlPlane, pods: str, name: str) -> None:
    """A Job whose two pods are a gang."""
    pod = a_new_pod("unused").with_gpus(8).of_class("test").ending_at_once()
    pod = pod.labelled("cellgate.io/gang-size", "2").with_spec(restartPolicy="Never")
    fields = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    job = a_workload("Job", name, template=a_template(pod), namespace=None, **fields)
    await plane.api_as("bob").create(f"/apis/batch/v1/namespaces/{pods.split('/')[4]}/jobs", job)


def to_run_again(job: JsonObject, *, name: str) -> JsonObject:
    """A Job as docs/submit.md makes one from another one."""
    metadata = {key: value for key, value in job["metadata"].items() if key in ("annotations",)}
    spec = {key: value for key, value in job["spec"].items() if key != "selector"}
    labels = spec["template"]["metadata"]["labels"]
    for key in ("controller-uid", "job-name"):
        labels.pop(key, None)
        labels.pop(f"batch.kubernetes.io/{key}", None)
    return {**job, "metadata": {**metadata, "name": name}, "spec": spec, "status": {}}
