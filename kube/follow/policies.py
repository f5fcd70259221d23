"""Policy documents in their ConfigMaps: from Kubernetes' JSON to the policy in force.

Both services follow the ConfigMaps with a `PolicySink`, so that both judge a document alike and
report an invalid one in the same words: in the log, and in one Event on the ConfigMap. The webhook
also asks it whether a change would leave a valid policy. A ConfigMap whose label names an unknown
kind is reported and otherwise left alone: a newer Cellgate may know it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from kube.api.events import Event, EventWriter
from kube.api.feed import FeedSource
from kube.values.objects import mapping, marks_of
from policy.errors import Problem, SpecError
from policy.parser import DATA_KEY, LABEL, DocumentKind, is_large, parse_label, read_document
from policy.policy import Policy
from policy.store import PolicyStore, PolicyText, build_policy, list_problems
from policy.wording import count_of, describe
from service.clock import Clock

logger = logging.getLogger(__name__)

Object = Mapping[str, Any]

_TIME_SECONDS: Final = 2.0
"""How long after its end a limit may still apply."""
_EVENT_PROBLEMS: Final = 5
"""How many problems an Event names; the log has all."""


def is_policy(config_map: Object) -> bool:
    """Tell whether a ConfigMap is labelled as a policy document."""
    return LABEL in marks_of(config_map, "labels")


def source_of(config_map: Object) -> str:
    """Name a ConfigMap in messages."""
    return f"ConfigMap {_name(config_map)}"


def read_policy_text(config_map: Object) -> PolicyText:
    """Take the document out of a ConfigMap. Raises SpecError if it is not there."""
    try:
        return _read_text(config_map)
    except SpecError as exc:
        raise SpecError(list_problems({source_of(config_map): exc.problems})) from exc


def _read_text(config_map: Object) -> PolicyText:
    label = marks_of(config_map, "labels").get(LABEL)
    kind = parse_label(label if isinstance(label, str) else "")
    data = mapping(config_map.get("data"))
    if DATA_KEY not in data:
        raise SpecError([Problem("", f"data has no {DATA_KEY}; the document belongs there")])
    text = data[DATA_KEY]
    if not isinstance(text, str):
        message = f"must be a string, not {describe(text)}"
        raise SpecError([Problem(f"data[{DATA_KEY}]", message)])
    return PolicyText(kind=kind, source=source_of(config_map), text=text)


class PolicySink:
    """Keeps the policy in force up to date with the ConfigMaps that exist.

    The Cluster document may come from a file instead, which then is the only one.
    """

    def __init__(self, events: EventWriter) -> None:
        """`events` gets an Event about each ConfigMap whose document is invalid."""
        self._store = PolicyStore()
        self._events = events
        self._config_maps: dict[str, Object] = {}
        self._cluster_file: PolicyText | None = None
        self._has_cluster = False
        self._now = datetime(1970, 1, 1, tzinfo=UTC)
        self.problems: tuple[Problem, ...] = ()
        """Everything that is wrong with the documents that exist."""
        self.on_change: list[Callable[[], None]] = []
        """Callbacks that run after each change of a document, valid or not."""

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._store.policy

    @property
    def cluster_text(self) -> str | None:
        """The text of the Cluster document in force."""
        return self._store.text(DocumentKind.CLUSTER)

    @property
    def lacks_valid_cluster(self) -> bool:
        """There is a Cluster document, and none was ever valid: nothing may be decided yet."""
        return self._has_cluster and self.cluster_text is None

    def source(self, namespace: str) -> FeedSource:
        """What to follow: the documents of a namespace."""
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        query = {"labelSelector": LABEL}
        return FeedSource(path=path, sink=self, query=query, prepare=self.prepare)

    async def prepare(self, obj: Object) -> None:
        """Read a large document in a thread, so that this process answers meanwhile.

        The result is remembered; what is wrong with it is told when the document is used.
        """
        with suppress(SpecError):
            found = _read_text(obj)
            if is_large(found.text):
                await asyncio.to_thread(read_document, found.text, kind=found.kind)

    def replace(self, objects: Sequence[Object]) -> None:
        """Take all documents there are; any other is gone."""
        self._config_maps = {_name(obj): obj for obj in objects}
        self._update()

    def upsert(self, obj: Object) -> None:
        """A document appeared or changed."""
        self._config_maps[_name(obj)] = obj
        self._update()

    def remove(self, obj: Object) -> None:
        """A document is gone."""
        self._config_maps.pop(_name(obj), None)
        self._update()

    def note_time(self, now: datetime) -> None:
        """End what has expired by now. A clock that goes back brings nothing back."""
        self._now = max(now, self._now)
        expiry = self.policy.next_expiry
        if expiry is not None and expiry <= self._now:
            self._update()

    async def follow_time(self, clock: Clock) -> NoReturn:
        """Note the time until cancelled."""
        while True:
            self.note_time(clock.now())
            await asyncio.sleep(_TIME_SECONDS)

    def use_cluster_file(self, text: str, *, path: str) -> None:
        """Take the Cluster document from a file; from now on ConfigMaps with one are ignored."""
        self._cluster_file = PolicyText(kind=DocumentKind.CLUSTER, source=f"File {path}", text=text)
        self._update()

    def check(self, config_map: Object) -> Policy:
        """Return the policy with this document. Raises SpecError with all problems."""
        return build_policy([*self._texts_without(_name(config_map)), read_policy_text(config_map)])

    def check_without(self, config_map: Object) -> Policy:
        """Return the policy without this document. Raises SpecError with all problems."""
        return build_policy(self._texts_without(_name(config_map)))

    def _texts_without(self, name: str) -> list[PolicyText]:
        others = [other for known, other in self._config_maps.items() if known != name]
        return _read_texts(others)[0]

    def _update(self) -> None:
        texts, problems = _read_texts(self._config_maps.values())
        ignored: list[Problem] = []
        if self._cluster_file is not None:
            ignored = [_ignored(text) for text in texts if text.kind is DocumentKind.CLUSTER]
            others = (text for text in texts if text.kind is not DocumentKind.CLUSTER)
            texts = [self._cluster_file, *others]
        self._has_cluster = any(text.kind is DocumentKind.CLUSTER for text in texts)
        before = self._store.policy.version
        policy = self._store.update(texts, now=self._now)
        problems.update(self._store.problems)
        self.problems = (*ignored, *list_problems(problems))
        if policy.version != before:
            logger.info("policy changed", extra={"policy_version": policy.version})
        self._report(problems)
        for tell in self.on_change:
            tell()

    def report_on_cluster(self, reason: str, message: str, *, is_warning: bool) -> None:
        """Write an Event on the ConfigMap of the Cluster document; on none if it is a file."""
        for config_map in self._config_maps.values() if self._cluster_file is None else ():
            if marks_of(config_map, "labels").get(LABEL) == DocumentKind.CLUSTER.label:
                obj = {**config_map, "apiVersion": "v1", "kind": "ConfigMap"}
                self._events.write(
                    Event.about(obj, reason=reason, message=message, is_warning=is_warning)
                )

    def _report(self, problems: Mapping[str, Sequence[Problem]]) -> None:
        if self.problems:
            told = [str(problem) for problem in self.problems]
            logger.warning("policy documents invalid", extra={"problems": told})
        for config_map in self._config_maps.values():
            found = problems.get(source_of(config_map))
            if found:
                self._events.write(_event(config_map, found))


def _event(config_map: Object, problems: Sequence[Problem]) -> Event:
    """Report an invalid document; what all replicas of both services report is one Event."""
    told = "; ".join(map(str, problems[:_EVENT_PROBLEMS]))
    rest = len(problems) - _EVENT_PROBLEMS
    more = f"; and {count_of(rest, 'more problem')}" if rest > 0 else ""
    return Event.about(
        {**config_map, "apiVersion": "v1", "kind": "ConfigMap"},
        reason="InvalidPolicy",
        message=f"Not in force; the last valid version, if any, stays in force: {told}{more}",
        is_unique=True,
    )


def _ignored(text: PolicyText) -> Problem:
    return Problem(
        text.source,
        "is not used, because the extender reads the Cluster document from a file (--cluster)",
    )


def _read_texts(
    config_maps: Iterable[Object],
) -> tuple[list[PolicyText], dict[str, Sequence[Problem]]]:
    """Return the documents that are there, and by source the problems with those that are not."""
    texts: list[PolicyText] = []
    problems: dict[str, Sequence[Problem]] = {}
    for config_map in config_maps:
        try:
            texts.append(_read_text(config_map))
        except SpecError as exc:
            problems[source_of(config_map)] = exc.problems
    return texts, problems


def _name(config_map: Object) -> str:
    return str(mapping(config_map.get("metadata")).get("name", ""))
