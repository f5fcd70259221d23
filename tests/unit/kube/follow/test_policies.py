"""Policy documents in ConfigMaps: what is in force, and what is reported of the rest."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kube.api.events import Event
from kube.follow.policies import PolicySink
from policy.documents.yaml_text import parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.policy.cluster_texts import hived_text

HEAD = "apiVersion: cellgate.io/v1\nkind: "
RULES = HEAD + "Rules\nrules:\n- {then: %s}\n"
IDENTITY = HEAD + "Identity\nvcs: {lab: {users: [dave]}}\n"


def a_sink(**documents: str) -> PolicySink:
    sink = PolicySink(KeptEvents())
    sink.replace([a_policy_map(kind, text) for kind, text in documents.items()])
    return sink


def events_of(sink: PolicySink) -> list[Event]:
    assert isinstance(sink._events, KeptEvents)
    return sink._events.written


def test_an_invalid_document_leaves_the_last_valid_one_in_force() -> None:
    sink = a_sink(rules=RULES % "retain")
    sink.upsert(a_policy_map("rules", RULES % "(", version="8"))
    assert [rule.then for rule in sink.policy.rules.rules] == ["retain"]
    assert [problem.path for problem in sink.problems] == ["ConfigMap rules: rules[0].then"]


def test_an_invalid_document_is_reported_by_one_event_on_its_config_map() -> None:
    sink = a_sink(rules="nonsense")
    assert events_of(sink) == [
        Event(
            namespace="cellgate-system",
            api_version="v1",
            kind="ConfigMap",
            name="rules",
            uid="uid-of-rules",
            reason="InvalidPolicy",
            message="Not in force; the last valid version, if any, stays in force: the document is "
            '"nonsense"; expected a mapping with apiVersion and kind',
            is_unique=True,
            resource_version="7",
        )
    ]


def test_an_event_names_the_first_problems_and_counts_the_rest() -> None:
    sink = a_sink(rules=HEAD + "Rules\nrules: [1, 2, 3, 4, 5, 6, 7]\n")
    (event,) = events_of(sink)
    assert event.message.endswith("rules[4]: must be a mapping, not 5; and 2 more problems")


@pytest.mark.parametrize(
    ("config_map", "problem"),
    [
        (
            a_policy_map("unheard-of", "", name="x"),
            'ConfigMap x: cellgate.io/policy: "unheard-of" is not a kind of policy ',
        ),
        ({**a_policy_map("rules", "", name="x"), "data": None}, "ConfigMap x: data has no policy."),
        (
            a_policy_map("rules", 5, name="x"),
            "ConfigMap x: data[policy.yaml]: must be a string",
        ),
    ],
    ids=["unknown kind", "no document", "not a text"],
)
def test_a_config_map_without_a_document_is_reported(
    config_map: dict[str, Any], problem: str
) -> None:
    sink = a_sink()
    sink.upsert(config_map)
    (told,) = sink.problems
    assert str(told).startswith(problem)
    assert [event.name for event in events_of(sink)] == ["x"]


@pytest.mark.parametrize(
    "change",
    [
        lambda sink: sink.upsert(a_policy_map("rules", RULES % "fail")),
        lambda sink: sink.upsert(a_policy_map("rules", "nonsense")),
        lambda sink: sink.remove(a_policy_map("rules", "")),
        lambda sink: sink.replace([]),
        lambda sink: sink.use_cluster_file(hived_text(lab=1), path="cluster.yaml"),
    ],
    ids=["changed", "invalid", "removed", "listed", "file"],
)
def test_callbacks_run_after_every_change(change: Callable[[PolicySink], None]) -> None:
    sink, changes = a_sink(rules=RULES % "retain"), list[int]()
    sink.on_change.append(lambda: changes.append(1))
    change(sink)
    assert changes == [1]


def test_the_cluster_file_is_the_only_cluster_document() -> None:
    sink = a_sink(cluster=hived_text(lab=3))
    sink.use_cluster_file(hived_text(lab=1), path="cluster.yaml")
    assert sink.cluster_text == hived_text(lab=1)
    assert list(map(str, sink.problems)) == [
        "ConfigMap cluster: is not used, because the extender reads the Cluster document from a "
        "file (--cluster)"
    ]
    sink.use_cluster_file("physicalCluster: [", path="cluster.yaml")
    assert sink.cluster_text == hived_text(lab=1)
    assert [problem.path.split(":")[0] for problem in sink.problems] == [
        "ConfigMap cluster",
        "File cluster.yaml",
    ]
    assert events_of(sink) == []


@pytest.mark.parametrize(
    ("documents", "lacks"),
    [
        ([], False),
        ([a_policy_map("cluster", hived_text(lab=1))], False),
        ([a_policy_map("cluster", hived_text(lab=99))], True),
        ([a_policy_map("cluster", hived_text(lab=1), name=name) for name in ("a", "b")], True),
    ],
    ids=["none", "valid", "invalid", "two"],
)
def test_nothing_can_be_decided_while_no_cluster_document_was_ever_valid(
    documents: list[dict[str, Any]], lacks: bool
) -> None:
    sink = a_sink()
    sink.replace(documents)
    assert sink.lacks_valid_cluster == lacks


def test_no_other_document_keeps_a_cluster_document_out() -> None:
    sink = a_sink(cluster=hived_text(lab=1), identity=IDENTITY)
    sink.upsert(a_policy_map("cluster", hived_text(other=1)))
    assert sink.cluster_text == hived_text(other=1)
    assert list(map(str, sink.problems)) == [
        'ConfigMap identity: vcs.lab: the Cluster document has no VC "lab"'
    ]


async def test_a_large_document_is_read_once_and_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readers: list[threading.Thread] = []

    def read(text: str) -> tuple[Plain, list[Problem]]:
        readers.append(threading.current_thread())
        return parse_yaml(text)

    monkeypatch.setattr("policy.parser.parse_yaml", read)
    users = ", ".join(f"user-{number}" for number in range(500))
    large = HEAD + f"Identity\nvcs: {{lab: {{users: [{users}]}}}}\n"
    sink = a_sink()
    await sink.prepare(a_policy_map("identity", large))
    sink.upsert(a_policy_map("identity", large))
    assert not sink.problems
    (reader,) = readers
    assert reader is not threading.main_thread()


async def test_a_document_that_cannot_be_read_is_prepared_in_vain() -> None:
    sink = a_sink()
    for text in ("nonsense", "[" * 5000):
        await sink.prepare(a_policy_map("rules", text))
        sink.upsert(a_policy_map("rules", text))
        assert sink.problems
