"""Reads the text of a policy ConfigMap: a typed document, or all its problems.

No text can raise anything but SpecError, and no part of a text is ignored silently. `MODELS` is the
registry of kinds: a new kind needs one line here and its model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from policy.cluster.derived import DerivedClusterDocument
from policy.cluster.hived import HivedClusterDocument, is_hived
from policy.documents.billing_document import BillingDocument
from policy.documents.classes_document import ClassesDocument
from policy.documents.identity_document import IdentityDocument
from policy.documents.model_errors import to_problems
from policy.documents.models import API_VERSION, CompileBudget, Document, Location
from policy.documents.queues_document import QueuesDocument
from policy.documents.quotas_document import QuotasDocument
from policy.documents.rules_document import RulesDocument
from policy.documents.shaping_document import ShapingDocument
from policy.documents.yaml_text import parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import Problem, SpecError
from policy.wording import count_of, describe, listing, quote

LABEL: Final = "cellgate.io/policy"
"""The label of a ConfigMap that names the kind of its policy document."""
DATA_KEY: Final = "policy.yaml"
MAX_PROBLEMS: Final = 100
_LARGE_CHARS: Final = 4096
_ROUNDS: Final = 4
"""Removing a value may make the one around it invalid, and so on outwards."""


class DocumentKind(StrEnum):
    """The kinds of documents."""

    CLASSES = "Classes"
    RULES = "Rules"
    CLUSTER = "Cluster"
    QUOTAS = "Quotas"
    IDENTITY = "Identity"
    SHAPING = "Shaping"
    BILLING = "Billing"
    QUEUES = "Queues"

    @property
    def label(self) -> str:
        """The value of the ConfigMap's label."""
        return self.value.lower()

    @property
    def may_be_many(self) -> bool:
        """Whether there may be several documents: of quotas, one for each group."""
        return self is DocumentKind.QUOTAS


MODELS: Final[Mapping[DocumentKind, type[Document]]] = {
    DocumentKind.CLASSES: ClassesDocument,
    DocumentKind.RULES: RulesDocument,
    DocumentKind.CLUSTER: DerivedClusterDocument,
    DocumentKind.QUOTAS: QuotasDocument,
    DocumentKind.IDENTITY: IdentityDocument,
    DocumentKind.SHAPING: ShapingDocument,
    DocumentKind.BILLING: BillingDocument,
    DocumentKind.QUEUES: QueuesDocument,
}
"""By kind. HiveD's YAML is a second form of the Cluster document: `HivedClusterDocument`."""


def parse_label(label: str) -> DocumentKind:
    """Read the value of the label on a ConfigMap. Raises SpecError."""
    for kind in DocumentKind:
        if kind.label == label:
            return kind
    known = listing([kind.label for kind in DocumentKind])
    message = f"{quote(label)} is not a kind of policy document; the kinds are {known}"
    raise SpecError([Problem(LABEL, message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document, as far as it could be read, and all its problems."""

    document: Document | None
    """With problems, only the readable part: for comparisons, never to put in force."""
    problems: Sequence[Problem] = ()


def parse_document(text: str, *, kind: DocumentKind | None = None) -> Document:
    """Read a document, of this kind if one is given (by the ConfigMap's label).

    Raises SpecError with all problems, each with its path.
    """
    found = read_document(text, kind=kind)
    if found.document is None or found.problems:
        raise SpecError(limit_problems(list(found.problems)))
    return found.document


def read_document(text: str, *, kind: DocumentKind | None = None) -> ReadDocument:
    """Read as much of a document as can be read. Raises SpecError if it is none at all.

    The last large documents are remembered: one may take a second, and several callers read it.
    """
    return _read_large(text, kind) if is_large(text) else _read(text, kind)


def restore_document(data: object, *, kind: DocumentKind) -> Document:
    """Build a document from its content as `policy.policy` wrote it; it was checked before then.

    Raises ValueError if this release cannot read it.
    """
    if not isinstance(data, dict):
        raise ValueError(f"the {kind} document is {describe(data)}")
    try:
        return _model_of(data, expected=kind).model_validate(data, context=CompileBudget())
    except SpecError as exc:
        raise ValueError(str(exc)) from exc


def is_large(text: str) -> bool:
    """Whether a document takes long to read: 10 ms or more."""
    return len(text) >= _LARGE_CHARS


@lru_cache(maxsize=8)
def _read_large(text: str, kind: DocumentKind | None) -> ReadDocument:
    return _read(text, kind)


def _read(text: str, kind: DocumentKind | None) -> ReadDocument:
    data, problems = parse_yaml(text)
    if data is None and kind is DocumentKind.CLUSTER:
        data = {}  # HiveD's default configuration is empty: no cells
    if not isinstance(data, dict):
        what = "the document is empty" if data is None else f"the document is {describe(data)}"
        problems.append(Problem("", f"{what}; expected a mapping with apiVersion and kind"))
        raise SpecError(problems)
    model = _model_of(data, expected=kind)
    document, more = _validate(data, model)
    return ReadDocument(document=document, problems=[*problems, *more])


def _model_of(data: Mapping[str, Plain], *, expected: DocumentKind | None) -> type[Document]:
    """Choose the model; HiveD's form is recognised by its keys."""
    might_be_cluster = expected is DocumentKind.CLUSTER or (
        expected is None and ("physicalCluster" in data or data.get("kind") == DocumentKind.CLUSTER)
    )
    if might_be_cluster and is_hived(data):
        return HivedClusterDocument
    return MODELS[_kind_of(data, expected=expected)]


def _kind_of(data: Mapping[str, Plain], *, expected: DocumentKind | None) -> DocumentKind:
    """Find the kind; a wrong `kind` is a problem of its own."""
    named = data.get("kind")
    if isinstance(named, str) and named in MODELS:
        if expected is None or named == expected:
            return DocumentKind(named)
        because = f"because the ConfigMap is labelled {LABEL}: {expected.label}"
        raise SpecError([Problem("kind", f"must be {expected}, not {named}, {because}")])
    if expected is not None:
        return expected  # the model reports what is wrong with `kind` and all other fields
    known = listing(list(MODELS))
    what = f"must be one of {known}, not {describe(named)}" if "kind" in data else "is required"
    raise SpecError([*_api_version_problems(data), Problem("kind", what)])


def _api_version_problems(data: Mapping[str, Plain]) -> list[Problem]:
    version = data.get("apiVersion")
    if version == API_VERSION:
        return []
    what = (
        f"must be {API_VERSION}, not {describe(version)}" if "apiVersion" in data else "is required"
    )
    return [Problem("apiVersion", what)]


def _validate(
    data: Mapping[str, Plain], model: type[Document]
) -> tuple[Document | None, list[Problem]]:
    """Return the readable document, and all its problems except those of YAML."""
    budget = CompileBudget()
    try:
        document = model.model_validate(data, context=budget)
    except ValidationError as exc:
        problems = [*to_problems(exc, model), *model.problems_in(data)]
        partial = _read_partially(data, exc, model, budget=budget) if model.may_be_partial else None
        return partial, problems
    problems = list(document.problems(data))
    return None if problems and not model.may_be_partial else document, problems


def _read_partially(
    data: Mapping[str, Plain],
    error: ValidationError,
    model: type[Document],
    *,
    budget: CompileBudget,
) -> Document | None:
    """Return the document without its unreadable parts; None if too little is left.

    An admin should not correct one mistake only to learn of the next: the readable part is compared
    with other documents, and never comes into force.
    """
    left: dict[str, Any] = {key: _copy(value) for key, value in data.items()}
    for _ in range(_ROUNDS):
        # Backwards: cutting a list does not move the entries before.
        for location in sorted(_unreadable(error), key=_order, reverse=True):
            model.take_away(left, location)
        try:
            return model.model_validate(left, context=budget)
        except ValidationError as exc:
            error = exc
    return None


def _unreadable(error: ValidationError) -> Iterator[Location]:
    """Yield what to remove: for a missing field, the mapping around it."""
    for details in error.errors(include_url=False, include_context=False):
        yield details["loc"][:-1] if _is_around(details) else details["loc"]


def _is_around(details: ErrorDetails) -> bool:
    is_key = details["loc"][-1:] == ("[key]",)
    return is_key or (details["type"] == "missing" and len(details["loc"]) > 1)


def _copy(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _order(location: Location) -> list[tuple[bool, int, str]]:
    return [(True, part, "") if isinstance(part, int) else (False, 0, part) for part in location]


def limit_problems(problems: list[Problem]) -> list[Problem]:
    """Keep a list of problems readable; the last one says how many are left out."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    rest = count_of(len(problems) - MAX_PROBLEMS, "more problem")
    return [*problems[:MAX_PROBLEMS], Problem("", f"{rest} not shown")]
