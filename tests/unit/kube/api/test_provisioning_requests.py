"""The requests to an autoscaler: what it is told, and what is taken back."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kube.api.client import KubeError
from kube.api.provisioning_requests import FoundRequest, ProvisioningRequests, build_template
from tests.support.kube.pods import a_pod


def test_a_template_has_what_decides_about_nodes_and_nothing_else() -> None:
    pod = (
        a_pod()
        .with_gpus(8)
        .gated()
        .in_vc("lab")
        .with_spec(
            nodeSelector={"zone": "a"},
            tolerations=[{"key": "gpu", "operator": "Exists"}],
            serviceAccountName="trainer",
            volumes=[{"name": "token"}],
        )
    )
    pod["spec"]["containers"][0] |= {"env": [{"name": "SECRET", "value": "x"}], "command": ["run"]}
    assert build_template(pod) == {
        "metadata": {"labels": {"cellgate.io/vc": "lab"}},
        "spec": {
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "resources": {"limits": {"nvidia.com/gpu": "8"}},
                }
            ],
        },
    }


def test_a_pod_without_a_spec_gives_an_empty_template() -> None:
    assert build_template({}) == {"metadata": {"labels": {}}, "spec": {}}


class Api:
    """Has one request of ours, and remembers what was deleted."""

    def __init__(self, *, fails: str = "", status: int = 0) -> None:
        self.deleted: list[str] = []
        self.fails, self.status = fails, status

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        if method == "DELETE":
            if self.fails and self.fails in path:
                raise KubeError("no", status=self.status)
            self.deleted.append(path.rpartition("namespaces/")[2])
            return {}
        names = ("cellgate-1-0", "cellgate-1-1", "of-a-user")
        sets = [{"count": 1, "podTemplateRef": {"name": name}} for name in names]
        metadata = {
            "name": "cellgate-1",
            "namespace": "lab",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        return {"items": [{"metadata": metadata, "spec": {"podSets": sets}}]}


def requests_of(api: Api) -> ProvisioningRequests:
    return ProvisioningRequests(
        api,  # type: ignore[arg-type] # all that it uses
        class_name="any",
        check_leading=lambda: None,
    )


async def test_the_templates_of_a_request_are_deleted_with_it_and_no_others() -> None:
    api = Api()
    (found,) = await requests_of(api).list()
    assert found == FoundRequest(
        namespace="lab",
        name="cellgate-1",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        is_over=False,
        templates=("cellgate-1-0", "cellgate-1-1"),
    )
    await requests_of(api).delete(found)
    assert api.deleted == [
        "lab/provisioningrequests/cellgate-1",
        "lab/podtemplates/cellgate-1-0",
        "lab/podtemplates/cellgate-1-1",
    ]


@pytest.mark.parametrize("status", [403, 404])
async def test_templates_that_are_gone_or_may_not_be_deleted_do_no_harm(status: int) -> None:
    api = Api(fails="podtemplates", status=status)
    (found,) = await requests_of(api).list()
    await requests_of(api).delete(found)
    assert api.deleted == ["lab/provisioningrequests/cellgate-1"]


async def test_a_request_that_cannot_be_deleted_is_an_error() -> None:
    api = Api(fails="provisioningrequests", status=403)
    (found,) = await requests_of(api).list()
    with pytest.raises(KubeError):
        await requests_of(api).delete(found)
    assert api.deleted == []
