"""AdmissionReview, as the API server writes and reads it."""

import base64
from typing import Any

import orjson
import pytest

from policy.errors import Problem, RequestError, SpecError
from webhook.wire import ReviewResponse, UserInfo, format_review, parse_review, refuse

REVIEW: dict[str, Any] = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "1f",
        "operation": "CREATE",
        "namespace": "vision",
        "userInfo": {"username": "alice", "groups": ["team-a"], "extra": {"x": ["y"]}},
        "object": {"kind": "Pod"},
        "oldObject": None,
        "options": {"kind": "CreateOptions"},
    },
}


def test_a_review_is_read_as_far_as_we_need_it() -> None:
    request = parse_review(orjson.dumps(REVIEW))

    assert (request.uid, request.operation, request.namespace) == ("1f", "CREATE", "vision")
    assert request.user == UserInfo(username="alice", groups=("team-a",))
    assert request.object == {"kind": "Pod"}
    assert not request.dry_run


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"[]", "must be a mapping, not"),
        (b"{}", "request: is required"),
        (
            b'{"request": {"uid": "", "operation": "EAT"}}',
            "request.uid: must not be empty; request.operation: must be CREATE, UPDATE, DELETE or "
            'CONNECT, not "EAT"; request.userInfo: is required',
        ),
    ],
    ids=["empty", "cut", "a list", "no request", "nonsense"],
)
def test_garbage_is_refused_with_its_path(body: bytes, told: str) -> None:
    with pytest.raises(RequestError) as error:
        parse_review(body)
    assert told in str(error.value)


def test_the_problems_of_a_document_are_told_one_in_a_line() -> None:
    problems = [Problem("ConfigMap a: levels", "is required"), Problem("ConfigMap a: x", "unknown")]
    assert refuse(SpecError(problems[:1])).message == "ConfigMap a: levels: is required"
    assert refuse(SpecError(problems)).message == (
        "2 problems:\n- ConfigMap a: levels: is required\n- ConfigMap a: x: unknown"
    )


def test_a_patch_is_sent_in_base64_together_with_its_type() -> None:
    operation = {"op": "remove", "path": "/spec/priority"}
    response = format_review("1f", ReviewResponse(is_allowed=True, patch=[operation]))["response"]

    patch = orjson.loads(base64.b64decode(response.pop("patch")))
    assert patch == [operation]
    assert response == {"uid": "1f", "allowed": True, "patchType": "JSONPatch"}


def test_a_refusal_has_a_reason() -> None:
    assert format_review("1f", ReviewResponse(is_allowed=False, message="no")) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "1f",
            "allowed": False,
            "status": {"code": 403, "reason": "Forbidden", "message": "no"},
        },
    }


def test_a_long_warning_is_cut_at_a_word() -> None:
    answer = ReviewResponse(is_allowed=True, warnings=["word " * 100])
    (warning,) = format_review("1f", answer)["response"]["warnings"]

    assert len(warning) <= 256
    assert warning.endswith("word …")
