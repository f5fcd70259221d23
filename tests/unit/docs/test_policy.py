"""The documents of docs/policy.md are valid, each alone and all together."""

import re
from pathlib import Path
from typing import Final

from cli.policy_files import build_from_files

_PAGE: Final = Path(__file__).parents[3] / "docs" / "policy.md"
_WHOLE: Final = re.DOTALL | re.MULTILINE
_README: Final = _PAGE.parents[1] / "README.md"
_KINDS: Final = [
    *("Classes", "Rules", "Quotas", "Billing", "Identity", "Cluster", "Shaping", "Queues"),
]


def _documents() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", _PAGE.read_text(), _WHOLE)


def test_the_page_shows_every_kind_once() -> None:
    kinds = [found[1] for one in _documents() if (found := re.search("^kind: (.+)$", one, re.M))]
    assert kinds == _KINDS


def test_the_documents_are_a_policy_together() -> None:
    documents = [(f"document {i}", one) for i, one in enumerate(_documents())]
    policy = build_from_files(documents).policy
    assert policy.classes.names == ("prod", "test", "oppo")


def test_the_cluster_document_of_the_readme_lists_the_vcs_of_the_simulated_users() -> None:
    (document,) = re.findall(r"^cat > cluster.yaml <<'END'\n(.*?)^END", _README.read_text(), _WHOLE)
    cluster = build_from_files([("README.md", document)]).policy.cluster
    assert cluster is not None
    assert sorted(cluster.vc_names) == ["lab", "speech", "vision"]
