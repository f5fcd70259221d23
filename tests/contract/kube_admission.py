"""The contract for admission: when and how the API server calls webhooks, and what it does then."""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from certs.issuance import issue_ca, issue_serving
from certs.tls import build_server_context
from tests.contract.kube import (
    LEAF_RESOURCE,
    Answer,
    Kube,
    KubeContract,
    Object,
    a_configmap,
    eventually,
    unscheduled_pod,
)

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
ASKS_FOR_LEAF_CELLS = (
    "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) "
    f"&& '{LEAF_RESOURCE}' in c.resources.limits)"
)
MENTIONS_LEAF_CELLS = f"'%s'.format([object]).contains('{LEAF_RESOURCE}')"
POD_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}

Respond = Callable[[Object], Object]


def allow(**more: object) -> Respond:
    """Let everything pass."""
    return lambda request: {"allowed": True, **more}


def patch(*operations: Object) -> Respond:
    """Let everything pass, changed."""
    encoded = base64.b64encode(orjson.dumps(operations)).decode()
    return allow(patchType="JSONPatch", patch=encoded)


class WebhookStub:
    """A webhook over TLS that answers as it is told and remembers what it was asked."""

    def __init__(self) -> None:
        self.respond: Respond = allow()
        self.seen: list[Object] = []
        self.timeouts: list[str] = []
        self.url = ""
        self.ca_bundle = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Serve on loopback with a certificate of a new CA."""
        app = web.Application()
        app.router.add_post("/", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        ca = issue_ca(now=datetime.now(UTC))
        self.ca_bundle = base64.b64encode(ca.certificate).decode()
        pair = issue_serving(ca, hosts=["127.0.0.1"], now=datetime.now(UTC))
        context = _server_context(pair.certificate, pair.key)
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def stop(self) -> None:
        """Stop answering."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
            await asyncio.sleep(0.05)  # TLS connections close in a few steps of the loop

    async def _answer(self, request: web.Request) -> web.Response:
        review: Any = orjson.loads(await request.read())
        asked = review["request"]
        self.seen.append(asked)
        self.timeouts.append(request.query["timeout"])
        review["response"] = {"uid": asked["uid"], **self.respond(asked)}
        response = web.Response(body=orjson.dumps(review), content_type="application/json")
        # A connection that the API server keeps would outlive the test's event loop.
        response.force_close()
        return response


class Registrations:
    """Registers webhooks that see one namespace only, and takes them away in the end."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._paths: list[str] = []

    async def add(self, plural: str, hook: WebhookStub, **settings: object) -> None:
        """Register a webhook with these settings."""
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        webhook = {
            "name": "contract.example.com",
            "clientConfig": {"url": hook.url, "caBundle": hook.ca_bundle},
            "rules": [POD_RULE],
            "namespaceSelector": selector,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **settings,
        }
        body = {"metadata": {"generateName": "contract-"}, "webhooks": [webhook]}
        created = await self._kube.create(f"{REGISTRATION}/{plural}", body)
        self._paths.append(f"{REGISTRATION}/{plural}/{created['metadata']['name']}")

    async def add_for_pods(self, plural: str, hook: WebhookStub, **settings: object) -> None:
        """Register, and wait until pods of the namespace come to the webhook."""
        await self.add(plural, hook, **settings)
        respond, hook.respond = hook.respond, allow()
        path = f"/api/v1/namespaces/{self._namespace}/pods"

        async def probe(attempt: int) -> Answer:
            return await self._kube.send(
                "POST", path, unscheduled_pod(f"probe-{attempt}", leaf_count=1)
            )

        await eventually(probe, lambda _: bool(hook.seen))
        hook.respond = respond
        hook.seen.clear()
        hook.timeouts.clear()

    async def remove_all(self) -> None:
        """Remove them, so that the API server does not call a webhook that has ended."""
        for path in self._paths:
            await self._kube.send("DELETE", path)


class AdmissionContract(KubeContract):
    """Webhooks are called in order, told the truth, and obeyed."""

    @pytest.fixture
    async def hook(self) -> AsyncIterator[WebhookStub]:
        """A webhook that is not registered yet."""
        stub = WebhookStub()
        await stub.start()
        yield stub
        await stub.stop()

    @pytest.fixture
    async def registrations(self, kube: Kube, namespace: str) -> AsyncIterator[Registrations]:
        """Where webhooks are registered."""
        made = Registrations(kube, namespace)
        yield made
        await made.remove_all()

    async def test_mutating_webhook_sees_the_pod_before_it_has_a_uid(
        self, kube: Kube, namespace: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        await registrations.add_for_pods("mutatingwebhookconfigurations", hook, timeoutSeconds=5)
        body = unscheduled_pod("a", leaf_count=1)
        body["metadata"] = {"generateName": "run-"}
        alice = kube.impersonating("alice", "system:masters")
        await alice.create(f"/api/v1/namespaces/{namespace}/pods", body)
        (asked,) = hook.seen
        assert hook.timeouts == ["5s"]
        assert asked["operation"] == "CREATE"
        assert asked["namespace"] == namespace
        assert asked["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
        assert asked["resource"] == {"group": "", "version": "v1", "resource": "pods"}
        assert asked["userInfo"]["username"] == "alice"
        assert set(asked["userInfo"]["groups"]) >= {"system:masters", "system:authenticated"}
        assert asked["dryRun"] is False
        assert asked["oldObject"] is None
        pod = asked["object"]
        assert (pod["kind"], pod["apiVersion"]) == ("Pod", "v1")
        assert "uid" not in pod["metadata"]
        assert "name" not in pod["metadata"]
        assert pod["metadata"]["namespace"] == namespace
        assert pod["spec"]["priority"] == 0
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {LEAF_RESOURCE: "1"}

    async def test_patch_of_a_webhook_is_stored(
        self, kube: Kube, pods: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        gate = {"name": "contract.example/held"}
        hook.respond = patch(
            {"op": "add", "path": "/metadata/annotations", "value": {"x/decision": "1"}},
            {"op": "add", "path": "/spec/schedulingGates", "value": [gate]},
        )
        await registrations.add_for_pods("mutatingwebhookconfigurations", hook)
        created = await kube.create(pods, unscheduled_pod("a", leaf_count=1))
        assert created["metadata"]["annotations"]["x/decision"] == "1"
        assert created["spec"]["schedulingGates"] == [gate]
        assert created["status"]["conditions"][0]["reason"] == "SchedulingGated"

    async def test_class_is_changed_together_with_what_it_had_set(
        self, kube: Kube, pods: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        await registrations.add_for_pods("mutatingwebhookconfigurations", hook)
        name = "system-cluster-critical"
        change = {"op": "add", "path": "/spec/priorityClassName", "value": name}
        hook.respond = patch(change)
        answer = await kube.send("POST", pods, unscheduled_pod("a", leaf_count=1))
        assert answer.refusal == (403, "Forbidden")
        assert "the integer value of priority (0) must not be provided" in answer.body["message"]
        forgotten = [
            {"op": "remove", "path": f"/spec/{field}"} for field in ("priority", "preemptionPolicy")
        ]
        hook.respond = patch(change, *forgotten)
        created = await kube.create(pods, unscheduled_pod("a", leaf_count=1))
        assert created["spec"]["priorityClassName"] == name
        assert created["spec"]["priority"] == 2_000_000_000
        assert created["spec"]["preemptionPolicy"] == "PreemptLowerPriority"

    async def test_patch_that_does_not_fit_fails_whatever_the_failure_policy(
        self, kube: Kube, pods: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        hook.respond = patch({"op": "remove", "path": "/spec/none"})
        await registrations.add_for_pods(
            "mutatingwebhookconfigurations", hook, failurePolicy="Ignore"
        )
        answer = await kube.send("POST", pods, unscheduled_pod("a", leaf_count=1))
        assert answer.refusal == (500, "InternalError")

    async def test_validating_webhook_sees_the_pod_as_it_will_be_stored(
        self, kube: Kube, pods: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        await registrations.add_for_pods("validatingwebhookconfigurations", hook)
        body = unscheduled_pod("a", leaf_count=1)
        body["metadata"] = {"generateName": "run-"}
        created = await kube.create(pods, body)
        (asked,) = hook.seen
        assert asked["object"]["metadata"]["uid"] == created["metadata"]["uid"]
        assert asked["object"]["metadata"]["name"] == created["metadata"]["name"]
        assert asked["object"]["status"]["phase"] == "Pending"

    @pytest.mark.parametrize(
        ("given", "refusal"),
        [
            ({"code": 403, "reason": "Forbidden", "message": "too many"}, (403, "Forbidden")),
            (
                {"code": 429, "reason": "TooManyRequests", "message": "too many"},
                (429, "TooManyRequests"),
            ),
            ({"message": "too many"}, (400, "")),
        ],
        ids=["403", "429", "no code"],
    )
    async def test_refusal_of_a_webhook_reaches_the_client(
        self,
        kube: Kube,
        pods: str,
        *,
        hook: WebhookStub,
        registrations: Registrations,
        given: Object,
        refusal: tuple[int, str],
    ) -> None:
        hook.respond = lambda request: {"allowed": False, "status": given}
        await registrations.add_for_pods("validatingwebhookconfigurations", hook)
        answer = await kube.send("POST", pods, unscheduled_pod("a", leaf_count=1))
        assert answer.refusal == refusal
        assert answer.body["message"] == (
            'admission webhook "contract.example.com" denied the request: too many'
        )
        assert (await kube.send("GET", f"{pods}/a")).status == 404

    async def test_warnings_of_a_webhook_reach_the_client(
        self, kube: Kube, pods: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        hook.respond = allow(warnings=['lowered to "oppo"', "second"])
        await registrations.add_for_pods("mutatingwebhookconfigurations", hook)
        refused = unscheduled_pod(
            "a", leaf_count=1, priorityClassName="system-node-critical", priority=1
        )
        answer = await kube.send("POST", pods, refused)
        assert (answer.status, answer.warnings) == (403, ())
        answer = await kube.send("POST", pods, unscheduled_pod("A_B", leaf_count=1))
        assert (answer.status, len(answer.warnings)) == (422, 2)
        answer = await kube.send("POST", pods, unscheduled_pod("a", leaf_count=1))
        assert answer.warnings == ('299 - "lowered to \\"oppo\\""', '299 - "second"')

    @pytest.mark.parametrize("expression", [ASKS_FOR_LEAF_CELLS, MENTIONS_LEAF_CELLS])
    async def test_match_condition_keeps_other_pods_away(
        self,
        kube: Kube,
        pods: str,
        *,
        hook: WebhookStub,
        registrations: Registrations,
        expression: str,
    ) -> None:
        condition = {"name": "leaf-cells", "expression": expression}
        await registrations.add_for_pods(
            "mutatingwebhookconfigurations", hook, matchConditions=[condition]
        )
        await kube.create(pods, unscheduled_pod("without"))
        assert hook.seen == []
        await kube.create(pods, unscheduled_pod("with", leaf_count=1))
        assert [asked["name"] for asked in hook.seen] == ["with"]

    @pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
    async def test_failure_policy_applies_when_the_webhook_does_not_answer(
        self,
        kube: Kube,
        pods: str,
        *,
        hook: WebhookStub,
        registrations: Registrations,
        policy: str,
        code: int,
    ) -> None:
        await registrations.add_for_pods(
            "mutatingwebhookconfigurations", hook, failurePolicy=policy, timeoutSeconds=1
        )
        await hook.stop()
        answer = await kube.send("POST", pods, unscheduled_pod("a", leaf_count=1))
        assert answer.status == code
        if code == 500:
            text = 'Internal error occurred: failed calling webhook "contract.example.com"'
            assert answer.body["message"].startswith(text)

    async def test_webhook_of_an_unknown_authority_is_not_trusted(
        self, kube: Kube, pods: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        ca = issue_ca(now=datetime.now(UTC))
        hook.ca_bundle = base64.b64encode(ca.certificate).decode()
        await registrations.add("mutatingwebhookconfigurations", hook)

        async def probe(attempt: int) -> Answer:
            return await kube.send("POST", pods, unscheduled_pod(f"probe-{attempt}"))

        await eventually(probe, lambda answer: answer.status == 500)
        assert hook.seen == []

    async def test_webhook_must_be_called_over_tls(
        self, kube: Kube, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        client = {"url": "http://127.0.0.1:1/"}
        webhook = {
            "name": "contract.example.com",
            "clientConfig": client,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        body = {"metadata": {"generateName": "contract-"}, "webhooks": [webhook]}
        path = f"{REGISTRATION}/mutatingwebhookconfigurations"
        assert (await kube.send("POST", path, body)).refusal == (422, "Invalid")

    async def test_documents_are_validated_when_created_changed_and_deleted(
        self, kube: Kube, configmaps: str, *, hook: WebhookStub, registrations: Registrations
    ) -> None:
        rule = {**POD_RULE, "operations": ["*"], "resources": ["configmaps"]}
        selector = {"matchLabels": {"ours": "yes"}}
        await registrations.add(
            "validatingwebhookconfigurations", hook, rules=[rule], objectSelector=selector
        )

        async def probe(attempt: int) -> Answer:
            return await kube.send("POST", configmaps, a_configmap(f"probe-{attempt}"))

        await eventually(probe, lambda _: bool(hook.seen))
        hook.seen.clear()
        created = await kube.create(configmaps, a_configmap("a", key="1"))
        changed = await kube.patch(f"{configmaps}/a", {"data": {"key": "2"}})
        await kube.send("DELETE", f"{configmaps}/a")
        assert [asked["operation"] for asked in hook.seen] == ["CREATE", "UPDATE", "DELETE"]
        _, update, deletion = hook.seen
        assert update["oldObject"]["data"] == created["data"]
        assert update["object"]["data"] == changed.body["data"]
        assert deletion["object"] is None
        assert deletion["oldObject"]["data"] == changed.body["data"]
        assert deletion["name"] == "a"


def _server_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "tls.crt"), Path(folder, "tls.key")
        files[0].write_bytes(certificate)
        files[1].write_bytes(key)
        return build_server_context(*files)
