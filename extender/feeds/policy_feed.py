"""The documents that the extender works by: classes, and the cluster's cells.

They come from policy ConfigMaps; the cluster's may come from a file instead (`--cluster`), which is
then the only one. A document that is bad does not get in: the last good one stays in force.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from extender.cluster.document_text import ClusterText, read_cluster_text
from extender.outcomes.announcer import ObjectRef
from kube.api.client import Object
from policy.classes import Classes
from policy.documents.documents import DATA_KEY, LABEL, Kind, parse_label
from policy.errors import Problem, SettingsError, SpecError
from policy.quotas.quotas import QuotaTable
from policy.rules.rules import RuleTable
from policy.store import PolicyStore, PolicyText

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A policy text, and the object that holds it."""

    kind: Kind
    text: str
    about: ObjectRef

    @property
    def source(self) -> str:
        return f"{self.about.kind} {self.about.name}"


OnChange = Callable[[], None]
OnProblems = Callable[[ObjectRef, Sequence[Problem]], None]


class Policies:
    """Keeps the documents in force up to date with the texts that exist: the sink of a feed."""

    def __init__(self, *, reads_cluster_file: bool, on_problems: OnProblems) -> None:
        self._reads_file = reads_cluster_file
        self._on_problems = on_problems
        self._store = PolicyStore()
        self._found: dict[str, _Found] = {}
        self._unreadable: dict[str, tuple[Problem, ...]] = {}
        self._cluster_source: _Found | None = None
        self._cluster_problems: tuple[Problem, ...] = ()
        self.cluster: ClusterText | None = None
        """The last good cluster document."""
        self.on_change: list[OnChange] = []
        self.usable = asyncio.Event()
        """Set once the texts were read and nothing can be misunderstood for want of a document."""

    @property
    def classes(self) -> Classes:
        """The priority classes in force."""
        return self._store.policy.classes

    @property
    def rules(self) -> RuleTable:
        """The priority rules in force."""
        return self._store.policy.rules

    @property
    def quotas(self) -> QuotaTable:
        """The quotas in force."""
        return self._store.policy.quotas

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the texts that exist."""
        unreadable = [problem for told in self._unreadable.values() for problem in told]
        return (*unreadable, *self._store.problems, *self._cluster_problems)

    @property
    def has_only_bad_cluster(self) -> bool:
        """There is a cluster document, and none was ever good: nothing may be decided yet."""
        return self.cluster is None and self._cluster_source is not None

    # -- ConfigMaps

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        self._found, self._unreadable = {}, {}
        for obj in objects:
            self._read(obj)
        self._update()

    def upsert(self, obj: Object) -> None:
        """Take note of a document that appeared or changed."""
        self._forget(obj)
        self._read(obj)
        self._update()

    def remove(self, obj: Object) -> None:
        """Take note of a document that is gone."""
        self._forget(obj)
        self._update()

    def _forget(self, obj: Object) -> None:
        self._found.pop(obj["metadata"]["name"], None)
        self._unreadable.pop(obj["metadata"]["name"], None)

    def _read(self, obj: Object) -> None:
        metadata, name = obj["metadata"], obj["metadata"]["name"]
        about = ObjectRef(
            kind="ConfigMap",
            namespace=metadata.get("namespace", ""),
            name=name,
            uid=metadata.get("uid", ""),
        )
        try:
            kind = parse_label(str((metadata.get("labels") or {}).get(LABEL, "")))
            text = (obj.get("data") or {}).get(DATA_KEY)
            if not isinstance(text, str):
                message = f"data has no {DATA_KEY}; the document belongs there"
                raise SpecError([Problem(f"ConfigMap {name}", message)])
            if kind is Kind.CLUSTER and self._reads_file:
                message = "is not used, because --cluster names a file"
                raise SpecError([Problem(f"ConfigMap {name}", message)])
        except SpecError as exc:
            self._unreadable[name] = exc.problems
            return
        self._found[name] = _Found(kind=kind, text=text, about=about)

    def _update(self) -> None:
        if not self._reads_file:
            self._choose_cluster()
        self._judge_others()
        self._tell()

    def _judge_others(self) -> None:
        """Take what agrees with the cluster document in force, like the webhook."""
        others = [found for found in self._found.values() if found.kind is not Kind.CLUSTER]
        self._store.update(
            (PolicyText(kind=one.kind, source=one.source, text=one.text) for one in others),
            cluster=self.cluster.document if self.cluster else None,
        )

    # -- the cluster document

    def use_file(self, text: str, *, path: str) -> None:
        """Take note of what the cluster's file says now."""
        about = ObjectRef(kind="File", namespace="", name=path)
        self._use_cluster(_Found(kind=Kind.CLUSTER, text=text, about=about))
        self._judge_others()
        self._tell()

    def _choose_cluster(self) -> None:
        documents = sorted(
            (found for found in self._found.values() if found.kind is Kind.CLUSTER),
            key=lambda found: found.about.name,
        )
        if len(documents) > 1:
            message = f"there is a Cluster document already, {documents[0].source}"
            self._cluster_problems = (Problem(documents[1].source, message),)
        elif documents:
            self._use_cluster(documents[0])
        else:
            self.cluster = self._cluster_source = None
            self._cluster_problems = ()

    def _use_cluster(self, found: _Found) -> None:
        if self._cluster_source == found:
            return
        self._cluster_source = found
        try:
            self.cluster = read_cluster_text(found.text)
            self._cluster_problems = ()
            for warning in self.cluster.document.warnings:
                logger.warning("cluster document", extra={"warning": str(warning)})
        except SpecError as exc:
            self._cluster_problems = tuple(
                Problem(f"{found.source}: {problem.path}" if problem.path else found.source,
                        problem.message)
                for problem in exc.problems
            )  # fmt: skip
            self._on_problems(found.about, exc.problems)

    def _tell(self) -> None:
        if not self.has_only_bad_cluster:
            self.usable.set()
        if self.problems:
            told = [str(problem) for problem in self.problems]
            logger.warning("policy has problems", extra={"problems": told})
        for tell in self.on_change:
            tell()


class ClusterFile:
    """Watches the file of `--cluster`: what it says now is in force within a moment."""

    def __init__(self, path: Path, policies: Policies) -> None:
        self._path = path
        self._policies = policies
        self._text: str | None = None

    async def load(self) -> None:
        """Read the file at the start; SettingsError with every problem if it cannot be used."""
        self._text = await asyncio.to_thread(load_cluster_file, self._path)
        self._policies.use_file(self._text, path=str(self._path))

    async def run(self) -> NoReturn:
        """Look again and again; a moment without the file, or a half written one, does no harm."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                text = await asyncio.to_thread(self._path.read_text)
            except (OSError, UnicodeDecodeError) as exc:
                logger.warning("cluster file not readable", extra={"error": str(exc)})
                continue
            if text != self._text:
                self._text = text
                self._policies.use_file(text, path=str(self._path))


def load_cluster_file(path: Path) -> str:
    """Read a cluster document that must be good; SettingsError with every problem if it is not."""
    try:
        text = path.read_text()
        read_cluster_text(text)
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"cannot read {path}: {exc}; check --cluster") from exc
    except SpecError as exc:
        raise SettingsError(f"--cluster {path} cannot be used: {exc}") from exc
    return text
