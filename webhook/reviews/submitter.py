"""Who is behind a request: the submitter, as far as anybody can be believed. Pure.

A stamp (the annotations that name the submitter) is believed if a trusted controller sends it.
Anybody else who sends a stamp that names somebody else is refused. Without a stamp, whoever sends
is the submitter.
"""

from dataclasses import dataclass

from kube import marks
from kube.read.pods import ManagedPod
from policy.errors import RequestError
from policy.identity.identity import Identity
from policy.submission import GroupName, UserName
from policy.wording import quote
from webhook.wire import UserInfo

STAMP_PATH = f"metadata.annotations[{marks.SUBMITTER_ANNOTATION}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """Who asks, with all groups that count."""

    user: UserName
    groups: tuple[GroupName, ...]


def identify(pod: ManagedPod, sender: UserInfo, identity: Identity) -> Submitter:
    """Find the submitter of a pod. Raises RequestError for a stamp of somebody else."""
    if pod.submitter is not None and identity.is_trusted(sender.username):
        groups = identity.groups_of(pod.submitter, pod.submitter_groups)
        return Submitter(user=pod.submitter, groups=groups)
    check_stamp(pod.submitter, sender, path=STAMP_PATH)
    groups = identity.groups_of(sender.username, sender.groups)
    return Submitter(user=UserName(sender.username), groups=groups)


def check_stamp(stamped: str | None, sender: UserInfo, *, path: str) -> None:
    """Raise RequestError if somebody who is not trusted claims to be somebody else."""
    if stamped is not None and stamped != sender.username:
        message = f"names {quote(stamped)}, but {quote(sender.username)} sends this"
        raise RequestError.at(path, f"{message}; {_hint(sender)}")


def _hint(sender: UserInfo) -> str:
    """Say what to do: a controller that works for others is a matter of the admins."""
    if sender.username.startswith("system:serviceaccount:"):
        return "an admin can list it under trustedControllers of the Identity document"
    return "leave the annotation out, it is set for you"
