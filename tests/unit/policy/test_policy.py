"""A policy that is stored with decisions is the same policy when it is read back."""

import pytest

from policy.parser import DocumentKind
from policy.policy import restore
from policy.store import PolicyText, build_policy
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.policy.documents import CLASSES_TEXT, HEAD

_TEXTS = {
    DocumentKind.CLASSES: CLASSES_TEXT,
    DocumentKind.RULES: f"""{HEAD}Rules
impossible: refuse
rules:
- {{user: "^é", priority: prod, occupied: "> 4", then: oppo, note: "a: 'b' \\U0001F600"}}
- {{when: 'labels["tier"] == "gold" && size(groups) > 1', then: retain}}
- {{group: a, vc: b, occupiedHigh: "<= 3", occupiedLow: "!= 5", then: fail}}
""",
    DocumentKind.QUOTAS: f"""{HEAD}Quotas
groups:
- name: vision
  admins: [root]
  limits: {{leafCells: 8, cpu: 1500m, memory: 64Gi, leafCellHours: {{day: 3.5, total: 100}}}}
  over: oppo
  eachUser: {{limits: {{gangs: 3}}}}
  users: [{{name: alice, limits: {{byLeafType: {{A100: 4}}}}}}]
  billing: {{identities: [bill], most: {{leafCells: 16}}}}
""",
    DocumentKind.IDENTITY: f"""{HEAD}Identity
groups: {{vision: [alice, bob]}}
vcs: {{a: {{groups: [vision], users: [carol]}}}}
trustedControllers: [operator]
templates: [{{apiVersion: x/v1, kind: Train, path: spec.template}}]
""",
    DocumentKind.SHAPING: f"""{HEAD}Shaping
shapes:
- name: dev
  namespace: ^dev
  labels: {{a: b}}
  fixedRequests: {{cpu: "4", memory: 8Gi}}
  maxRunSeconds: 7200
""",
    DocumentKind.BILLING: f"""{HEAD}Billing
limits:
- {{group: vision, limits: {{leafCells: 12}}, until: "2099-01-01T00:00:00Z", reason: paid}}
""",
    DocumentKind.QUEUES: f"""{HEAD}Queues
levels:
- {{name: urgent, who: {{when: "leafCells <= 8"}}, strategy: fifo}}
- {{name: all, strategy: formula, worth: {{class: 24h, fairShare: 48h}}, promoteAfter: 7d}}
""",
}


@pytest.mark.parametrize("cluster", [derived_text(a=4), hived_text(a=1), None])
def test_all_kinds_of_documents_are_restored(cluster: str | None) -> None:
    texts = [PolicyText(kind=kind, source=f"cm/{kind}", text=text) for kind, text in _TEXTS.items()]
    if cluster is not None:
        texts.append(PolicyText(kind=DocumentKind.CLUSTER, source="cm/cluster", text=cluster))
    policy = build_policy(texts)
    restored = restore(policy.content)
    assert restored.content == policy.content
    assert restored.rules.rules == policy.rules.rules
    assert restored.quotas.groups == policy.quotas.groups
    assert (restored.classes, restored.identity) == (policy.classes, policy.identity)
    assert (restored.queues, restored.cluster) == (policy.queues, policy.cluster)


def test_several_documents_of_quotas_keep_their_order() -> None:
    names = [f"team-{number}" for number in range(12)]
    texts = [
        PolicyText(
            kind=DocumentKind.QUOTAS,
            source=f"cm/{name}",
            text=f"{HEAD}Quotas\ngroups: [{{name: {name}, limits: {{leafCells: 1}}}}]",
        )
        for name in names
    ]
    policy = build_policy(texts)
    restored = restore(policy.content)
    assert [one.name for one in restored.quotas.groups] == [
        one.name for one in policy.quotas.groups
    ]
    assert restored.version == policy.version


@pytest.mark.parametrize("content", ["[", "[]", '{"Rules": []}', '{"Other": {}}'])
def test_what_cannot_be_read_is_a_value_error(content: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        restore(content)
