"""Whatever a row contains, no text of it is in the masked row."""

from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.log.mask.fields import LeftOutError, Pass, fields
from cli.log.mask.masker import Masker
from cli.log.mask.names import Collected, Kind
from cli.log.mask.row_kinds import ROWS
from extender.cells.wording import WORDING
from state.log.archive.lines import encode_row
from state.log.records import DecisionRecord, LoggedDocument, RowKind
from tests.support.state.records import a_decision

_MARK: Final = "qzx"
_TEXTS: Final = [
    "qzx", "lab/qzx", "qzx/bert", "/qzx", "qzx@qzx", "qzx#3", "nodes of qzx", "qzx in domain qzx",
    "system:serviceaccount:qzx:qzx", "system:serviceaccounts:qzx", "alternative 1 of 2 (qzx)",
    "qzx/0", "a/qzx/0", "hugepages-qzx", "host port qzx", "batch/Job/qzx/qzx", "billing/qzx",
    "entry qzx", "7qzx", "2 x 8 qzx", "2026-01-01qzx", "qzx.qzx", "qzx@0b1c0b1c", "user == 'qzx'",
    "", "all", "unknown",
]  # fmt: skip
_KEYS: Final = sorted(
    {key for mask in ROWS.values() for part in (mask.details, mask.inputs) for key in part}
    | {"is", "code", "arguments", "reason", "wording", "qzx", "only", "bits", "member", "gang"}
    | {"node", "leafCells", "chain", "others", "choices", "differences", "labels", "name", "role"}
    | {"quarantine", "resource", "form", "refused", "window", "pool", "slips", "levelName", "bits"}
    | {"vc_cell", "vc_cell_type", "leafType", "parts", "begins", "cause", "domain", "facts"}
)
_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 500), st.sampled_from(_TEXTS), st.text(max_size=3)
)
# Objects that rows have, each with a form of its own.
_shaped = st.fixed_dictionaries(
    {},
    optional={
        "node": st.fixed_dictionaries(
            {},
            optional={
                "quarantine": _scalars,
                "leafType": _scalars,
                "labels": st.just({"qzx": "qzx"}),
            },
        ),
        "shortage": st.fixed_dictionaries({}, optional={"resource": _scalars, "node": _scalars}),
        "placement": st.fixed_dictionaries(
            {}, optional={"chain": _scalars, "vc_cell": _scalars, "vc_cell_type": _scalars}
        ),
        "tried": st.fixed_dictionaries({"form": _scalars, "refused": st.just([["qzx", "qzx"]])}),
        "window": st.fixed_dictionaries({"name": _scalars, "begins": _scalars}),
        "decision": st.fixed_dictionaries(
            {
                "is": st.sampled_from(["wait", "reject", "qzx"]),
                "code": st.sampled_from(["unknown-vc", "gang-mismatch", "no-room", "qzx"]),
                "arguments": st.dictionaries(
                    st.sampled_from(
                        ["gang", "choices", "pods", "chain", "resource", "form", "qzx"]
                    ),
                    st.one_of(_scalars, st.lists(_scalars, max_size=3)),
                ),
                "reason": _scalars,
                "wording": st.sampled_from([WORDING, 1, "qzx"]),
            }
        ),
        "kept": st.lists(st.lists(_scalars, max_size=5), max_size=2),
        "parts": st.just([{"sizes": ["qzx"], "nodes": {"but": ["qzx"], "bits": "qzx"}}]),
    },
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(_KEYS + _TEXTS), inner, max_size=6),
    ),
    max_leaves=12,
)
_rows = st.dictionaries(st.sampled_from(_KEYS), _values, max_size=8)


def _masked(record: DecisionRecord) -> bytes:
    collected = Collected()
    Masker(collected).mask(record)
    return encode_row(Masker(collected.assign()).mask(record))


@given(data=st.data(), kind=st.sampled_from(sorted(ROWS)), subject=st.sampled_from(_TEXTS))
def test_no_text_of_any_row_is_in_its_masked_row(
    data: st.DataObject, kind: tuple[str, str, str], subject: str
) -> None:
    service, row, outcome = kind
    known = ROWS[kind]
    details = {one: data.draw(_values) for one in known.details} | data.draw(_rows)
    record = a_decision(
        subject,
        service=service,
        kind=row,
        outcome=outcome,
        reason="qzx says so",
        pod_uid="qzx",
        policy_version="qzx",
        details=details | data.draw(_shaped),
        inputs={one: data.draw(_values) for one in known.inputs} | data.draw(_shaped),
    )
    assert _MARK not in _masked(record).decode()


@pytest.mark.parametrize("field", ["service", "kind", "outcome"])
def test_a_row_of_an_unknown_kind_says_only_when_it_was_written(field: str) -> None:
    told: dict[str, Any] = {"service": "extender", "kind": RowKind.NODE, "outcome": "gone"}
    record = a_decision("node-1", **{**told, field: "qzx"}, details={"qzx": 1}, inputs={"qzx": 1})
    collected = Collected()
    masker = Masker(collected)
    row = orjson.loads(encode_row(masker.mask(record)))
    assert (row["kind"], row["subject"], row["details"], row["inputs"]) == ("unknown", "", {}, {})
    assert len(masker.now.left_out) == 1


@given(kind=st.sampled_from(["Cluster", "policy", "qzx"]), content=st.one_of(_values, _rows))
def test_no_text_of_any_document_is_in_the_masked_one(kind: str, content: object) -> None:
    for text in (orjson.dumps(content).decode(), orjson.dumps({"Rules": content}).decode()):
        document = LoggedDocument(kind=kind, content=text)
        record = a_decision(
            "lab/a", inputs={"policy": document.hash}, documents=(document,), service="webhook"
        )
        assert _MARK not in _masked(record).decode()


def test_a_field_that_is_not_declared_is_left_out_and_named() -> None:
    now = Pass(names=Collected())
    mask = fields({"known": lambda *_: 1})
    assert mask({"known": "x", "new": "alice"}, now, "rows: inputs") == {"known": 1}
    assert now.left_out == {"rows: inputs.new": 1}
    with pytest.raises(LeftOutError):
        mask("alice", now, "rows: inputs")


def test_the_same_name_has_one_pseudonym_wherever_it_is() -> None:
    collected = Collected()
    rows = [
        a_decision("lab/bert", kind=RowKind.POD, outcome="budget", service="extender",
                   inputs={"gang": ["lab", "bert"], "breaks": True}),
        a_decision("node-1", kind=RowKind.NODE, outcome="observed", service="extender",
                   inputs={"node": {"healthy": True, "labels": {"rack": "node-1"}}}),
    ]  # fmt: skip
    for row in rows:
        Masker(collected).mask(row)
    known = collected.assign()
    gang, node = (Masker(known).mask(row) for row in rows)
    assert gang.subject == "/".join(gang.inputs["gang"]) == "namespace-0001/gang-0001"
    assert node.inputs["node"]["labels"] == {known.of(Kind.PLACE, "rack"): node.subject}
