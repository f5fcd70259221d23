"""The contract for pods: defaults, what may change, status, priority, binding, deletion."""

from typing import Any

import pytest

from tests.contract.kube import (
    JSON_PATCH,
    LEAF_RESOURCE,
    STRATEGIC_PATCH,
    Answer,
    Kube,
    KubeContract,
    Object,
    a_binding,
    eventually,
    unscheduled_pod,
)

# No such node exists, so that no kubelet takes the pod; the API server does not look.
NODE = "contract-node"
GATE = {"name": "contract.example/held"}


class PodContract(KubeContract):
    """Create and change pods."""

    async def test_new_pod_is_pending_with_defaults(self, kube: Kube, pods: str) -> None:
        body = unscheduled_pod("a", leaf_count=2)
        del body["spec"]["schedulerName"]
        body["spec"]["nodeSelector"] = {"contract": "nowhere"}
        body["status"] = {"phase": "Running"}
        created = await kube.create(pods, body)
        spec = created["spec"]
        assert created["status"]["phase"] == "Pending"
        assert spec["schedulerName"] == "default-scheduler"
        assert spec["restartPolicy"] == "Always"
        assert spec["terminationGracePeriodSeconds"] == 30
        assert spec["containers"][0]["resources"]["requests"] == {LEAF_RESOURCE: "2"}
        assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")

    async def test_pod_without_containers_is_invalid(self, kube: Kube, pods: str) -> None:
        answer = await kube.send("POST", pods, unscheduled_pod("a", containers=[]))
        assert answer.refusal == (422, "Invalid")
        assert "spec.containers: Required value" in answer.body["message"]

    async def test_gated_pod_says_so_and_its_gate_can_only_go(self, kube: Kube, pods: str) -> None:
        created = await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE]))
        condition = _condition(created, "PodScheduled")
        assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
        patch = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
        lifted = await kube.patch(f"{pods}/a", patch, content_type=JSON_PATCH)
        assert not lifted.body["spec"].get("schedulingGates")
        again = await kube.patch(f"{pods}/a", {"spec": {"schedulingGates": [GATE]}})
        assert again.refusal == (422, "Invalid")

    @pytest.mark.parametrize(
        "patch",
        [{"schedulingGates": None}, {"schedulingGates": []}],
        ids=["null", "empty list"],
    )
    async def test_merge_patch_lifts_a_gate_and_annotates_at_once(
        self, kube: Kube, pods: str, patch: Object
    ) -> None:
        await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE]))
        metadata = {"annotations": {"x/placement": "here"}}
        answer = await kube.patch(f"{pods}/a", {"metadata": metadata, "spec": patch})
        assert answer.status == 200
        assert not answer.body["spec"].get("schedulingGates")
        assert answer.body["metadata"]["annotations"]["x/placement"] == "here"

    async def test_strategic_patch_deletes_a_gate_by_name(self, kube: Kube, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE, {"name": "x/other"}]))
        patch = {"spec": {"schedulingGates": [{**GATE, "$patch": "delete"}]}}
        answer = await kube.patch(f"{pods}/a", patch, content_type=STRATEGIC_PATCH)
        assert answer.body["spec"]["schedulingGates"] == [{"name": "x/other"}]

    @pytest.mark.parametrize(
        "patch",
        [{"schedulerName": "another"}, {"priority": 5}, {"nodeSelector": {"a": "b"}}],
        ids=["schedulerName", "priority", "nodeSelector"],
    )
    async def test_spec_of_a_pod_does_not_change(
        self, kube: Kube, pods: str, patch: Object
    ) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        assert (await kube.patch(f"{pods}/a", {"spec": patch})).refusal == (422, "Invalid")

    async def test_gated_pod_may_still_be_steered_to_nodes(self, kube: Kube, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE]))
        answer = await kube.patch(f"{pods}/a", {"spec": {"nodeSelector": {"a": "b"}}})
        assert answer.body["spec"]["nodeSelector"] == {"a": "b"}

    async def test_status_has_a_path_of_its_own(self, kube: Kube, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        nominated = {"status": {"nominatedNodeName": NODE}}
        ignored = await kube.patch(f"{pods}/a", nominated)
        assert "nominatedNodeName" not in ignored.body["status"]
        patch = {**nominated, "spec": {"schedulerName": "another"}}
        answer = await kube.patch(f"{pods}/a/status", patch)
        assert answer.status == 200
        assert answer.body["status"]["nominatedNodeName"] == NODE
        assert answer.body["spec"]["schedulerName"] == "none"

    async def test_strategic_patch_merges_conditions_by_type(self, kube: Kube, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE]))
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}
        patch = {"status": {"conditions": [condition]}}
        path = f"{pods}/a/status"
        answer = await kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        types = {one["type"] for one in answer.body["status"]["conditions"]}
        assert types == {"PodScheduled", "DisruptionTarget"}
        patch["status"]["conditions"] = [{**condition, "reason": "Other"}]
        answer = await kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        assert _condition(answer.body, "DisruptionTarget")["reason"] == "Other"
        assert len(answer.body["status"]["conditions"]) == 2

    async def test_strategic_patch_deletes_a_condition_of_a_version(
        self, kube: Kube, pods: str
    ) -> None:
        created = await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE]))
        version = {"resourceVersion": created["metadata"]["resourceVersion"]}
        gone = {"type": "PodScheduled", "$patch": "delete"}
        patch = {"metadata": version, "status": {"conditions": [gone]}}
        path = f"{pods}/a/status"
        answer = await kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        assert not answer.body["status"].get("conditions")
        again = await kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        assert again.refusal == (409, "Conflict")


class PriorityContract(KubeContract):
    """A PriorityClass becomes the integer priority of a pod."""

    @pytest.fixture
    async def class_name(self, kube: Kube, pods: str) -> str:
        """A class of value 77 that never preempts, known to admission."""
        body = {
            "metadata": {"generateName": "contract-"},
            "value": 77,
            "preemptionPolicy": "Never",
        }
        created = await kube.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        name = str(created["metadata"]["name"])

        async def probe(attempt: int) -> Answer:
            return await kube.send(
                "POST", pods, unscheduled_pod(f"probe-{attempt}", priorityClassName=name)
            )

        await eventually(probe, lambda answer: answer.status == 201)
        return name

    async def test_class_gives_priority_and_preemption_policy(
        self, kube: Kube, pods: str, class_name: str
    ) -> None:
        created = await kube.create(pods, unscheduled_pod("a", priorityClassName=class_name))
        assert created["spec"]["priority"] == 77
        assert created["spec"]["preemptionPolicy"] == "Never"

    async def test_missing_class_is_forbidden(self, kube: Kube, pods: str) -> None:
        answer = await kube.send("POST", pods, unscheduled_pod("a", priorityClassName="none"))
        assert answer.refusal == (403, "Forbidden")
        assert answer.body["message"] == (
            'pods "a" is forbidden: no PriorityClass with name none was found'
        )

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"priority": 5}, "the integer value of priority (5) must not be provided in pod spec"),
            (
                {"preemptionPolicy": "PreemptLowerPriority"},
                "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided",
            ),
        ],
        ids=["priority", "preemptionPolicy"],
    )
    async def test_value_that_contradicts_the_class_is_forbidden(
        self, kube: Kube, pods: str, class_name: str, *, spec: dict[str, Any], message: str
    ) -> None:
        body = unscheduled_pod("a", priorityClassName=class_name, **spec)
        answer = await kube.send("POST", pods, body)
        assert answer.refusal == (403, "Forbidden")
        assert message in answer.body["message"]

    async def test_value_of_a_class_does_not_change(self, kube: Kube, class_name: str) -> None:
        path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{class_name}"
        assert (await kube.patch(path, {"value": 78})).refusal == (422, "Invalid")


class BindingContract(KubeContract):
    """A pod is bound once, by a caller that knows its UID or version."""

    async def test_binding_sets_node_and_annotations_together(
        self, kube: Kube, node: str, pods: str
    ) -> None:
        body = unscheduled_pod("a")
        body["metadata"]["annotations"] = {"x/keep": "1", "x/change": "2"}
        await kube.create(pods, body)
        await kube.patch(f"{pods}/a/status", {"status": {"nominatedNodeName": node}})
        binding = a_binding("a", node, annotations={"x/change": "3", "x/new": "4"})
        answer = await kube.send("POST", f"{pods}/a/binding", binding)
        assert answer.status == 201
        assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
        bound = await kube.get(f"{pods}/a")
        assert bound["spec"]["nodeName"] == node
        assert bound["metadata"]["annotations"] == {"x/keep": "1", "x/change": "3", "x/new": "4"}
        assert _condition(bound, "PodScheduled")["status"] == "True"
        assert "nominatedNodeName" not in bound["status"]
        assert await kube.names(pods, fieldSelector=f"spec.nodeName={node}") == ["a"]

    async def test_bound_pod_is_not_bound_again(self, kube: Kube, node: str, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        await kube.create(f"{pods}/a/binding", a_binding("a", node))
        answer = await kube.send("POST", f"{pods}/a/binding", a_binding("a", "other"))
        assert answer.refusal == (409, "Conflict")
        assert "already assigned to node" in answer.body["message"]

    async def test_gated_pod_is_not_bound(self, kube: Kube, node: str, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a", schedulingGates=[GATE]))
        answer = await kube.send("POST", f"{pods}/a/binding", a_binding("a", node))
        assert answer.refusal == (409, "Conflict")

    async def test_binding_of_another_version_or_uid_is_a_conflict(
        self, kube: Kube, node: str, pods: str
    ) -> None:
        created = await kube.create(pods, unscheduled_pod("a"))
        version = created["metadata"]["resourceVersion"]
        changed = await kube.patch(f"{pods}/a", {"metadata": {"labels": {"new": "label"}}})
        for wrong in ({"uid": "other"}, {"resourceVersion": version}):
            binding = a_binding("a", node, **wrong)
            answer = await kube.send("POST", f"{pods}/a/binding", binding)
            assert answer.refusal == (409, "Conflict")
        right = {"uid": created["metadata"]["uid"], "resourceVersion": changed.version}
        await kube.create(f"{pods}/a/binding", a_binding("a", node, **right))

    async def test_binding_that_names_another_pod_or_none_is_refused(
        self, kube: Kube, node: str, pods: str
    ) -> None:
        answer = await kube.send("POST", f"{pods}/a/binding", a_binding("a", node))
        assert answer.refusal == (404, "NotFound")
        await kube.create(pods, unscheduled_pod("a"))
        answer = await kube.send("POST", f"{pods}/a/binding", a_binding("b", node))
        assert answer.refusal == (400, "BadRequest")


class DeletionContract(KubeContract):
    """A pod that runs is told to end; one that does not is gone at once."""

    async def test_pod_without_a_node_is_gone_at_once(self, kube: Kube, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        answer = await kube.send("DELETE", f"{pods}/a")
        assert (answer.status, answer.body["kind"]) == (200, "Pod")
        assert (await kube.send("GET", f"{pods}/a")).status == 404

    async def test_bound_pod_has_time_to_end(self, kube: Kube, node: str, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        await kube.create(f"{pods}/a/binding", a_binding("a", node))
        await kube.wait_until_bound(f"{pods}/a")
        answer = await kube.send("DELETE", f"{pods}/a", gracePeriodSeconds="20")
        assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 20
        marked = await kube.get(f"{pods}/a")
        assert marked["metadata"]["deletionTimestamp"]
        longer = await kube.send("DELETE", f"{pods}/a")
        assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 20
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        answer = await kube.send("DELETE", f"{pods}/a", options)
        assert answer.status == 200
        assert (await kube.send("GET", f"{pods}/a")).status == 404

    async def test_time_that_a_pod_was_given_is_not_cut_by_who_names_none(
        self, kube: Kube, node: str, pods: str
    ) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        await kube.create(f"{pods}/a/binding", a_binding("a", node))
        await kube.wait_until_bound(f"{pods}/a")
        first = await kube.send("DELETE", f"{pods}/a", gracePeriodSeconds="600")
        again = await kube.send("DELETE", f"{pods}/a")
        assert again.status == 200
        assert again.body["metadata"] == first.body["metadata"]

    async def test_deletion_of_another_version_is_refused(
        self, kube: Kube, node: str, pods: str
    ) -> None:
        created = await kube.create(pods, unscheduled_pod("a"))
        await kube.create(f"{pods}/a/binding", a_binding("a", node))
        await kube.wait_until_bound(f"{pods}/a")
        meant = {"resourceVersion": created["metadata"]["resourceVersion"]}
        answer = await kube.send("DELETE", f"{pods}/a", {"preconditions": meant})
        assert answer.refusal == (409, "Conflict")
        assert "deletionTimestamp" not in (await kube.get(f"{pods}/a"))["metadata"]

    async def test_finished_pod_is_gone_at_once(self, kube: Kube, node: str, pods: str) -> None:
        await kube.create(pods, unscheduled_pod("a"))
        await kube.create(f"{pods}/a/binding", a_binding("a", node))
        await kube.wait_until_bound(f"{pods}/a")
        await kube.patch(f"{pods}/a/status", {"status": {"phase": "Succeeded"}})
        await kube.send("DELETE", f"{pods}/a")
        assert (await kube.send("GET", f"{pods}/a")).status == 404


def _condition(pod: Object, kind: str) -> Object:
    (found,) = [one for one in pod["status"]["conditions"] if one["type"] == kind]
    return dict(found)
