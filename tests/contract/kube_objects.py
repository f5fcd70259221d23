"""The contract for objects of any kind: create, read, list, change, delete."""

import pytest

from tests.contract.kube import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Kube,
    KubeContract,
    Object,
    a_configmap,
)


class ObjectContract(KubeContract):
    """Create, read, list, change and delete objects."""

    async def test_server_says_its_version(self, kube: Kube) -> None:
        assert (await kube.get("/version"))["major"] == "1"

    async def test_created_object_gets_uid_version_and_time(
        self, kube: Kube, configmaps: str, namespace: str
    ) -> None:
        created = await kube.create(configmaps, a_configmap("a", key="value"))
        assert (created["kind"], created["apiVersion"]) == ("ConfigMap", "v1")
        assert created["data"] == {"key": "value"}
        metadata = created["metadata"]
        assert (metadata["name"], metadata["namespace"]) == ("a", namespace)
        assert int(metadata["resourceVersion"]) > 0
        assert len(metadata["uid"]) == 36
        assert metadata["creationTimestamp"].endswith("Z")
        assert await kube.get(f"{configmaps}/a") == created

    async def test_dry_run_answers_and_stores_nothing(self, kube: Kube, configmaps: str) -> None:
        created = await kube.send("POST", configmaps, a_configmap("a", key="1"), dryRun="All")
        assert created.status == 201
        assert created.body["data"] == {"key": "1"}
        assert (await kube.send("GET", f"{configmaps}/a")).status == 404
        stored = await kube.create(configmaps, a_configmap("a", key="1"))
        again = await kube.send("POST", configmaps, a_configmap("a"), dryRun="All")
        assert again.refusal == (409, "AlreadyExists")
        changed = a_configmap("a", key="2")
        answer = await kube.send("PUT", f"{configmaps}/a", changed, dryRun="All")
        assert answer.body["data"] == {"key": "2"}
        assert await kube.get(f"{configmaps}/a") == stored

    async def test_client_cannot_choose_the_uid(self, kube: Kube, configmaps: str) -> None:
        body = a_configmap("a")
        body["metadata"]["uid"] = "mine"
        assert (await kube.create(configmaps, body))["metadata"]["uid"] != "mine"

    async def test_version_of_a_new_object_cannot_be_given(
        self, kube: Kube, configmaps: str
    ) -> None:
        body = a_configmap("a")
        body["metadata"]["resourceVersion"] = "5"
        answer = await kube.send("POST", configmaps, body)
        assert answer.status == 500
        assert answer.body["message"].startswith("resourceVersion should not be set")

    async def test_name_is_generated_from_a_prefix(self, kube: Kube, configmaps: str) -> None:
        body = {"metadata": {"generateName": "run-"}}
        names = {(await kube.create(configmaps, body))["metadata"]["name"] for _ in range(3)}
        assert len(names) == 3
        assert all(name.startswith("run-") and len(name) == 9 for name in names)

    async def test_name_that_is_taken_is_refused(self, kube: Kube, configmaps: str) -> None:
        await kube.create(configmaps, a_configmap("a"))
        answer = await kube.send("POST", configmaps, a_configmap("a"))
        assert answer.refusal == (409, "AlreadyExists")
        assert answer.body["message"] == 'configmaps "a" already exists'
        assert (answer.body["kind"], answer.body["status"]) == ("Status", "Failure")

    async def test_missing_object_is_not_found(self, kube: Kube, configmaps: str) -> None:
        answer = await kube.send("GET", f"{configmaps}/none")
        assert answer.refusal == (404, "NotFound")
        assert answer.body["message"] == 'configmaps "none" not found'
        assert answer.body["code"] == 404
        assert answer.body["details"]["name"] == "none"

    async def test_missing_object_of_a_group_is_named_with_it(
        self, kube: Kube, namespace: str
    ) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/none"
        answer = await kube.send("GET", path)
        assert answer.body["message"] == 'leases.coordination.k8s.io "none" not found'

    async def test_missing_namespace_is_not_found(self, kube: Kube) -> None:
        path = "/api/v1/namespaces/no-such-namespace/configmaps"
        answer = await kube.send("POST", path, a_configmap("a"))
        assert answer.refusal == (404, "NotFound")
        assert answer.body["message"] == 'namespaces "no-such-namespace" not found'

    async def test_method_that_is_not_served_is_refused(self, kube: Kube) -> None:
        answer = await kube.send("POST", "/api/v1/configmaps", a_configmap("a"))
        assert answer.refusal == (405, "MethodNotAllowed")

    @pytest.mark.parametrize(
        ("body", "content_type", "code"),
        [
            (b"{", "application/json", 400),
            (
                b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}',
                "application/json",
                400,
            ),
            (b"[]", "application/json", 400),
            (b'{"metadata":{"name":"a","labels":["b"]}}', "application/json", 400),
            (b'{"metadata":{"name":"a","annotations":{"b":1}}}', "application/json", 400),
            (b"name = a", "application/toml", 415),
        ],
        ids=["not JSON", "another kind", "a list", "labels", "annotations", "unknown format"],
    )
    async def test_body_that_is_not_understood_is_refused(
        self, kube: Kube, configmaps: str, *, body: bytes, content_type: str, code: int
    ) -> None:
        answer = await kube.send("POST", configmaps, body, content_type=content_type)
        assert answer.status == code

    async def test_body_of_another_namespace_is_refused(self, kube: Kube, configmaps: str) -> None:
        body = a_configmap("a")
        body["metadata"]["namespace"] = "another"
        answer = await kube.send("POST", configmaps, body)
        assert answer.refusal == (400, "BadRequest")

    @pytest.mark.parametrize("metadata", [{"name": "Not_Allowed"}, {}], ids=["bad", "none"])
    async def test_object_without_a_good_name_is_invalid(
        self, kube: Kube, configmaps: str, metadata: Object
    ) -> None:
        answer = await kube.send("POST", configmaps, {"metadata": metadata})
        assert answer.refusal == (422, "Invalid")

    async def test_namespace_is_labelled_with_its_name(self, kube: Kube, namespace: str) -> None:
        found = await kube.get(f"/api/v1/namespaces/{namespace}")
        assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace
        assert found["status"]["phase"] == "Active"

    async def test_deletion_answers_with_a_status(self, kube: Kube, configmaps: str) -> None:
        created = await kube.create(configmaps, a_configmap("a"))
        answer = await kube.send("DELETE", f"{configmaps}/a")
        assert answer.status == 200
        assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
        assert answer.body["details"]["uid"] == created["metadata"]["uid"]
        assert (await kube.send("DELETE", f"{configmaps}/a")).refusal == (404, "NotFound")

    async def test_deletion_of_another_object_of_the_name_is_refused(
        self, kube: Kube, configmaps: str
    ) -> None:
        await kube.create(configmaps, a_configmap("a"))
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
        answer = await kube.send("DELETE", f"{configmaps}/a", options)
        assert answer.refusal == (409, "Conflict")


class UpdateContract(KubeContract):
    """Change objects without losing concurrent changes."""

    async def test_update_of_an_old_version_is_a_conflict(
        self, kube: Kube, configmaps: str
    ) -> None:
        old = await kube.create(configmaps, a_configmap("a"))
        answer = await kube.send("PUT", f"{configmaps}/a", {**old, "data": {"by": "first"}})
        assert answer.status == 200
        assert int(answer.version) > int(old["metadata"]["resourceVersion"])
        answer = await kube.send("PUT", f"{configmaps}/a", {**old, "data": {"by": "second"}})
        assert answer.refusal == (409, "Conflict")
        assert answer.body["message"].startswith('Operation cannot be fulfilled on configmaps "a"')
        assert (await kube.get(f"{configmaps}/a"))["data"] == {"by": "first"}

    async def test_update_without_a_version_replaces_anything(
        self, kube: Kube, configmaps: str
    ) -> None:
        created = await kube.create(configmaps, a_configmap("a", key="old"))
        answer = await kube.send("PUT", f"{configmaps}/a", a_configmap("a", key="new"))
        assert answer.body["data"] == {"key": "new"}
        assert answer.body["metadata"]["uid"] == created["metadata"]["uid"]

    async def test_lease_is_not_updated_without_a_version(self, kube: Kube, namespace: str) -> None:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        await kube.create(leases, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}})
        body = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "y"}}
        answer = await kube.send("PUT", f"{leases}/a", body)
        assert answer.refusal == (422, "Invalid")

    async def test_update_under_another_name_is_refused(self, kube: Kube, configmaps: str) -> None:
        await kube.create(configmaps, a_configmap("a"))
        answer = await kube.send("PUT", f"{configmaps}/a", a_configmap("b"))
        assert answer.refusal == (400, "BadRequest")

    async def test_update_of_a_missing_object_is_not_found(
        self, kube: Kube, configmaps: str
    ) -> None:
        answer = await kube.send("PUT", f"{configmaps}/a", a_configmap("a"))
        assert answer.refusal == (404, "NotFound")

    async def test_update_that_changes_nothing_makes_no_new_version(
        self, kube: Kube, configmaps: str
    ) -> None:
        created = await kube.create(configmaps, a_configmap("a", key="value"))
        answer = await kube.patch(f"{configmaps}/a", {"data": {"key": "value"}})
        assert answer.version == created["metadata"]["resourceVersion"]

    async def test_merge_patch_sets_and_removes(self, kube: Kube, configmaps: str) -> None:
        await kube.create(configmaps, a_configmap("a", keep="1", drop="2"))
        patch = {"data": {"drop": None, "new": "3"}, "metadata": {"annotations": {"x/y": "z"}}}
        answer = await kube.patch(f"{configmaps}/a", patch)
        assert answer.body["data"] == {"keep": "1", "new": "3"}
        assert answer.body["metadata"]["annotations"] == {"x/y": "z"}

    async def test_patch_with_an_old_version_is_a_conflict(
        self, kube: Kube, configmaps: str
    ) -> None:
        old = await kube.create(configmaps, a_configmap("a"))
        await kube.patch(f"{configmaps}/a", {"data": {"by": "first"}})
        metadata = {"resourceVersion": old["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "data": {"by": "second"}}
        answer = await kube.patch(f"{configmaps}/a", patch)
        assert answer.refusal == (409, "Conflict")

    async def test_update_for_another_uid_is_a_conflict(self, kube: Kube, configmaps: str) -> None:
        await kube.create(configmaps, a_configmap("a"))
        body = a_configmap("a", by="second")
        body["metadata"]["uid"] = "other"
        answer = await kube.send("PUT", f"{configmaps}/a", body)
        assert answer.refusal == (409, "Conflict")
        answer = await kube.patch(f"{configmaps}/a", {"metadata": {"uid": "other"}})
        assert answer.refusal == (422, "Invalid")

    async def test_json_patch_reaches_keys_with_a_slash(self, kube: Kube, configmaps: str) -> None:
        await kube.create(configmaps, a_configmap("a", labels={"x/y": "old"}))
        operations = [
            {"op": "test", "path": "/metadata/labels/x~1y", "value": "old"},
            {"op": "replace", "path": "/metadata/labels/x~1y", "value": "new"},
            {"op": "remove", "path": "/metadata/labels/ours"},
            {"op": "add", "path": "/data", "value": {"a": "1"}},
        ]
        answer = await kube.patch(f"{configmaps}/a", operations, content_type=JSON_PATCH)
        assert answer.body["metadata"]["labels"] == {"x/y": "new"}
        assert answer.body["data"] == {"a": "1"}

    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "remove", "path": "/data/none"},
            {"op": "add", "path": "/none/none", "value": "1"},
            {"op": "test", "path": "/data/key", "value": "other"},
        ],
        ids=["remove nothing", "add below nothing", "failed test"],
    )
    async def test_json_patch_that_does_not_fit_is_invalid(
        self, kube: Kube, configmaps: str, operation: Object
    ) -> None:
        created = await kube.create(configmaps, a_configmap("a", key="value"))
        first = {"op": "add", "path": "/data/other", "value": "1"}
        answer = await kube.patch(f"{configmaps}/a", [first, operation], content_type=JSON_PATCH)
        assert answer.refusal == (422, "Invalid")
        assert await kube.get(f"{configmaps}/a") == created

    async def test_strategic_patch_of_a_map_is_a_merge(self, kube: Kube, configmaps: str) -> None:
        await kube.create(configmaps, a_configmap("a", keep="1", drop="2"))
        patch = {"data": {"drop": None, "new": "3"}}
        answer = await kube.patch(f"{configmaps}/a", patch, content_type=STRATEGIC_PATCH)
        assert answer.body["data"] == {"keep": "1", "new": "3"}

    @pytest.mark.parametrize(
        ("body", "content_type", "code"),
        [({}, "application/json", 415), ([], MERGE_PATCH, 400)],
        ids=["not a patch type", "list as a merge patch"],
    )
    async def test_patch_that_is_not_understood_is_refused(
        self, kube: Kube, configmaps: str, *, body: object, content_type: str, code: int
    ) -> None:
        await kube.create(configmaps, a_configmap("a"))
        answer = await kube.patch(f"{configmaps}/a", body, content_type=content_type)
        assert answer.status == code


class ListContract(KubeContract):
    """List collections, narrowed and in pages."""

    async def test_list_is_ordered_and_its_items_do_not_repeat_the_kind(
        self, kube: Kube, configmaps: str
    ) -> None:
        for name in ("b", "a"):
            await kube.create(configmaps, a_configmap(name))
        found = await kube.get(configmaps, labelSelector="ours")
        assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
        assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b"]
        assert all("kind" not in item and "apiVersion" not in item for item in found["items"])
        versions = [int(item["metadata"]["resourceVersion"]) for item in found["items"]]
        assert int(found["metadata"]["resourceVersion"]) >= max(versions)

    @pytest.mark.parametrize(
        ("selector", "names"),
        [
            ("tier=gold", ["a"]),
            ("tier==gold", ["a"]),
            ("tier!=gold", ["b", "c"]),
            ("tier in (gold, silver)", ["a", "b"]),
            ("tier notin (gold,silver)", ["c"]),
            ("tier", ["a", "b"]),
            ("!tier", ["c"]),
            ("tier,x/zone=1", ["b"]),
            ("tier in (gold,silver),x/zone!=1", ["a"]),
        ],
    )
    async def test_label_selector_narrows_a_list(
        self, kube: Kube, configmaps: str, *, selector: str, names: list[str]
    ) -> None:
        await kube.create(configmaps, a_configmap("a", labels={"tier": "gold"}))
        await kube.create(configmaps, a_configmap("b", labels={"tier": "silver", "x/zone": "1"}))
        await kube.create(configmaps, a_configmap("c"))
        assert await kube.names(configmaps, labelSelector=f"ours,{selector}") == names

    async def test_field_selector_narrows_a_list(self, kube: Kube, configmaps: str) -> None:
        for name in ("a", "b"):
            await kube.create(configmaps, a_configmap(name))
        query = {"labelSelector": "ours", "fieldSelector": "metadata.name!=a"}
        assert await kube.names(configmaps, **query) == ["b"]
        assert await kube.names(configmaps, fieldSelector="metadata.name=a") == ["a"]

    @pytest.mark.parametrize(
        "query",
        [
            {"fieldSelector": "data.key=1"},
            {"labelSelector": "a in b"},
            {"continue": "nonsense"},
            {"limit": "many"},
        ],
        ids=["unknown field", "bad selector", "bad token", "bad limit"],
    )
    async def test_query_that_is_not_understood_is_refused(
        self, kube: Kube, configmaps: str, query: dict[str, str]
    ) -> None:
        assert (await kube.send("GET", configmaps, **query)).refusal == (400, "BadRequest")

    async def test_pages_show_the_collection_as_it_was_at_the_first(
        self, kube: Kube, configmaps: str
    ) -> None:
        for name in ("a", "b", "c", "d", "e"):
            await kube.create(configmaps, a_configmap(name, key="old"))
        query = {"labelSelector": "ours", "limit": "2"}
        page = await kube.get(configmaps, **query)
        items, version = page["items"], page["metadata"]["resourceVersion"]
        await kube.create(configmaps, a_configmap("c2"))
        await kube.patch(f"{configmaps}/d", {"data": {"key": "new"}})
        await kube.send("DELETE", f"{configmaps}/e")
        while token := page["metadata"].get("continue"):
            page = await kube.get(configmaps, **query, **{"continue": token})
            assert page["metadata"]["resourceVersion"] == version
            items += page["items"]
        assert [item["metadata"]["name"] for item in items] == ["a", "b", "c", "d", "e"]
        assert {item["data"]["key"] for item in items} == {"old"}

    async def test_collection_may_span_namespaces(self, kube: Kube, namespace: str) -> None:
        other = await kube.create("/api/v1/namespaces", {"metadata": {"generateName": "contract-"}})
        for where in (namespace, other["metadata"]["name"]):
            path = f"/api/v1/namespaces/{where}/configmaps"
            await kube.create(path, a_configmap("a", labels={"spans": namespace}))
        found = await kube.get("/api/v1/configmaps", labelSelector=f"spans={namespace}")
        assert {item["metadata"]["namespace"] for item in found["items"]} == {
            namespace,
            other["metadata"]["name"],
        }
