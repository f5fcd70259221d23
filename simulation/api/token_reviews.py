"""TokenReview and SubjectAccessReview: the API server answers them and stores nothing.

The simulated cluster has no roles: only admins get access to non-resource URLs.
"""

from simulation.objects.fields import Object
from simulation.objects.identity import ADMIN, Tokens
from simulation.objects.status import bad_request, invalid

AUTHENTICATION_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
AUTHORIZATION_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def review_token(body: Object, tokens: Tokens) -> Object:
    """Answer which user a token belongs to."""
    token = _spec(body).get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = tokens.find(token)
    if user is None:
        return {**body, "status": {"user": {}, "error": "invalid bearer token"}}
    return {**body, "status": {"authenticated": True, "user": user.to_user_info()}}


def review_access(body: Object) -> Object:
    """Answer whether a user has access."""
    spec = _spec(body)
    if not (spec.get("user") or spec.get("groups")):
        why = 'spec.user: Invalid value: "": at least one of user or group must be specified'
        raise invalid("SubjectAccessReview", "", why)
    allowed = bool({*ADMIN.groups} & {*(spec.get("groups") or ())})
    return {**body, "status": {"allowed": allowed}}


def _spec(body: Object) -> Object:
    spec = body.get("spec")
    if not isinstance(spec, dict):
        raise bad_request("spec must be an object")
    return spec
