"""A misspelt label or annotation is told to its user: without it a gang would be one pod."""

from kube import marks
from tests.support.kube.pods import a_pod
from tests.support.kube.workloads import a_template, a_workload
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook


async def test_a_misspelt_mark_of_a_pod_is_told() -> None:
    pod = a_pod("bert").with_gpus(1).annotated("cellgate.io/startby", "tonight")
    pod = pod.annotated(marks.GANG_SIZE_LABEL, "4").labelled("cellgate.io/gang_size", "4")
    pod = pod.annotated("cellgate.io/completely-else", "x").annotated("example.org/startby", "x")
    answer = await Webhook().pods.mutate(a_review(pod, user="alice"))
    assert (answer.is_allowed, [line for line in answer.warnings if "no effect" in line]) == (
        True,
        [
            "cellgate: label cellgate.io/gang_size is not known and has no effect; is "
            "cellgate.io/gang-size meant?",
            "cellgate: annotation cellgate.io/startby is not known and has no effect; is "
            "cellgate.io/start-by meant?",
            "cellgate: cellgate.io/gang-size has no effect as annotation: write it as label",
            "cellgate: annotation cellgate.io/completely-else is not known and has no effect",
        ],
    )


async def test_a_misspelt_mark_of_a_workload_or_its_template_is_told_once() -> None:
    job = a_workload("Job", template=a_template())
    job["metadata"]["annotations"] = {"cellgate.io/hld": "data is copied"}
    metadata = job["spec"]["template"].setdefault("metadata", {})
    metadata["annotations"] = {"cellgate.io/hld": "data is copied"}
    answer = await Webhook().templates.mutate(a_review(job))
    assert [line for line in answer.warnings if "no effect" in line] == [
        "cellgate: annotation cellgate.io/hld is not known and has no effect; is cellgate.io/hold "
        "meant?"
    ]


async def test_marks_that_exist_are_not_told() -> None:
    pod = a_pod("bert").with_gpus(1).annotated(marks.COST_ANNOTATION, "10m")
    answer = await Webhook().pods.mutate(a_review(pod, user="alice"))
    assert not [line for line in answer.warnings if "no effect" in line]
