"""The contract for reviews: the user of a token, and the rights of a user."""

import pytest

from tests.contract.kube import Kube, KubeContract

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
LOOKING = {"path": "/v1/gangs", "verb": "get"}


class ReviewContract(KubeContract):
    """Questions that are answered and not stored."""

    async def test_an_unknown_token_is_not_authenticated(self, kube: Kube) -> None:
        answer = await kube.send("POST", TOKENS, {"spec": {"token": "made-up"}})
        assert answer.status == 201
        assert "authenticated" not in answer.body["status"]
        assert answer.body["status"]["user"] == {}

    async def test_an_empty_token_is_refused(self, kube: Kube) -> None:
        answer = await kube.send("POST", TOKENS, {"spec": {"token": ""}})
        assert answer.refusal == (400, "BadRequest")

    @pytest.mark.parametrize(("group", "allowed"), [("system:masters", True), ("nobody", False)])
    async def test_rights_come_with_groups(self, kube: Kube, group: str, allowed: bool) -> None:
        spec = {"user": "somebody", "groups": [group], "nonResourceAttributes": LOOKING}
        answer = await kube.send("POST", ACCESS, {"spec": spec})
        assert answer.status == 201
        assert answer.body["status"]["allowed"] is allowed

    async def test_a_review_without_a_user_is_refused(self, kube: Kube) -> None:
        answer = await kube.send("POST", ACCESS, {"spec": {"nonResourceAttributes": LOOKING}})
        assert answer.refusal == (422, "Invalid")
