"""Masks rows, one after the other, in the order of a file. Pure, apart from what it remembers."""

import hashlib
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from cli.log.mask.documents.cluster import mask_cluster
from cli.log.mask.documents.policies import mask_policy
from cli.log.mask.fields import LeftOutError, Pass, fields
from cli.log.mask.names import Names
from cli.log.mask.row_kinds import ROWS, RowMask
from cli.log.mask.sentences import write_reason
from cli.log.mask.structures import gang_text, uid
from policy.admission.logged import is_complete
from policy.parser import DocumentKind
from policy.policy import VERSION_CHARS
from policy.rules.recorded import MASKED
from state.log.candidates import KnownNodes
from state.log.records import DecisionRecord, LoggedDocument, RowKind

_UNKNOWN: Final = "unknown"
_KEY_BASE: Final = 0x00000000_0000_7000_8000_000000000000


@dataclass(frozen=True, slots=True, kw_only=True)
class _MaskedDocument:
    """A document that was masked before."""

    document: LoggedDocument
    are_cells_listed: bool


class Masker:
    """One pass over the rows of a file."""

    def __init__(self, names: Names, *, has_listed_cells: bool = False) -> None:
        self.now = Pass(names=names, has_listed_cells=has_listed_cells)
        self._documents: dict[str, _MaskedDocument] = {}
        self._epoch: int | None = None
        self._count = 0

    def mask(self, record: DecisionRecord) -> DecisionRecord:
        """Mask a row, without checksums over names."""
        now = self.now
        self._count += 1
        if record.epoch != self._epoch:
            self._epoch = record.epoch
            now.known, now.masked, now.are_cells_listed = KnownNodes(), KnownNodes(), False
        documents = self._mask_documents(record)
        where = f"{record.service} {record.kind} {record.outcome}"
        known = ROWS.get((record.service, record.kind, record.outcome))
        if known is None:
            now.leave_out(f"rows {where}")
            return self._emptied(record)
        masked = self._masked(record, known, documents, where)
        if record.kind == RowKind.NODE:
            self._observe(record, masked)
        return masked

    def mask_subject(self, subject: str | None) -> str | None:
        """Mask the gang that was asked for."""
        return None if subject is None else gang_text(subject, self.now, "--subject")

    def _masked(
        self,
        record: DecisionRecord,
        known: RowMask,
        documents: tuple[LoggedDocument, ...],
        where: str,
    ) -> DecisionRecord:
        now = self.now
        details = fields(known.details)(record.details, now, f"{where}: details")
        inputs = fields(known.inputs)(record.inputs, now, f"{where}: inputs")
        if record.kind == RowKind.ADMISSION and is_complete(inputs):
            inputs[MASKED] = True
        masked = replace(
            self._emptied(record),
            kind=record.kind,
            outcome=record.outcome,
            subject=self._or_nothing(known, record.subject, f"{where}: subject"),
            policy_version=self._version(record),
            pod_uid=uid(record.pod_uid, now, where),
            latency_seconds=record.latency_seconds,
            details=details,
            inputs=inputs,
            documents=documents,
        )
        return replace(masked, reason=write_reason(record, masked))

    def _version(self, record: DecisionRecord) -> str | None:
        """Return the version of the masked policy, which is the hash of its content."""
        masked = self._documents.get(str(record.inputs.get("policy")))
        if masked is None or record.policy_version is None:
            return None
        return hashlib.sha256(masked.document.content.encode()).hexdigest()[:VERSION_CHARS]

    def _or_nothing(self, known: RowMask, subject: str, where: str) -> str:
        try:
            return str(known.subject(subject, self.now, where))
        except (LeftOutError, ValueError):
            self.now.leave_out(where)
            return ""

    def _emptied(self, record: DecisionRecord) -> DecisionRecord:
        """Return a row that says only when it was written, and its number."""
        return DecisionRecord(
            key=UUID(int=_KEY_BASE + self._count),
            at=record.at,
            service=record.service if record.service in _SERVICES else _UNKNOWN,
            kind=_UNKNOWN,
            subject="",
            outcome=_UNKNOWN,
            reason="",
            latency_seconds=0.0,
            epoch=record.epoch,
            sequence=record.sequence,
        )

    # -- what rows refer to

    def _mask_documents(self, record: DecisionRecord) -> tuple[LoggedDocument, ...]:
        found: list[LoggedDocument] = []
        for one in record.documents:
            masked = self._documents.get(one.hash) or self._mask_document(one)
            if masked is not None:
                self._documents[one.hash] = masked
                self.now.hashes[one.hash] = masked.document.hash
                found.append(masked.document)
        wanted = record.inputs.get("document")
        if isinstance(wanted, str) and wanted in self._documents:
            self.now.are_cells_listed = self._documents[wanted].are_cells_listed
        return tuple(found)

    def _mask_document(self, document: LoggedDocument) -> _MaskedDocument | None:
        where = f"documents of kind {document.kind}"
        mask = _DOCUMENTS.get(document.kind)
        try:
            if mask is None:
                raise LeftOutError(where)
            text = mask(document.content, self.now, where)
        except (LeftOutError, TypeError, ValueError) as told:
            self.now.leave_out(str(told) if isinstance(told, LeftOutError) else where)
            return None
        return _MaskedDocument(
            document=replace(document, content=text), are_cells_listed=self.now.are_cells_listed
        )

    def _observe(self, record: DecisionRecord, masked: DecisionRecord) -> None:
        """Follow which nodes the engine knows, under both names."""
        if record.outcome == "gone":
            self.now.known.forget(record.subject)
            self.now.masked.forget(masked.subject)
        else:
            self.now.known.observe(record.subject)
            self.now.masked.observe(masked.subject)


_DOCUMENTS: Final = {str(DocumentKind.CLUSTER): mask_cluster, "policy": mask_policy}
_SERVICES: Final = ("extender", "webhook")
