"""The template by which an autoscaler is told what the members of a gang ask for."""

from kube.api.provisioning_requests import build_template
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
