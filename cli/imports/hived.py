"""`cellgate import hived FILE`: converts the configuration of HiveD to a Cluster document.

The configuration is a file of its own, the text under `hivedscheduler.config` in OpenPAI's
service-configuration.yaml, or a value of a ConfigMap. Cells and virtual clusters are taken over
unchanged. Settings of HiveD's process and CPU and memory of leaf types are left out: Cellgate does
not use them. The result is checked as the webhook checks it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import yaml

from cli.policy_files import objects_of, split_documents
from policy.cluster.document import ClusterDocument
from policy.cluster.hived_keys import SETTINGS, SKU_KEYS, SKU_REASON
from policy.documents.models import API_VERSION, mapping_of
from policy.documents.yaml_text import as_written, parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import Problem, SettingsError, SpecError
from policy.parser import DocumentKind, parse_document
from policy.wording import count_of

_COUNTS: Final = ("cellNumber", "childCellNumber")
_KEYS: Final = ("physicalCluster", "virtualClusters")
_LOOKED: Final = (
    "expected the keys physicalCluster and virtualClusters, at the top, under "
    "hivedscheduler.config or in a ConfigMap"
)


def convert_hived(text: str) -> tuple[str, list[str]]:
    """Return the Cluster document of a configuration, and remarks about what was left out.

    Raises SettingsError for a text that holds no configuration, SpecError for one with problems.
    """
    data = _only([found for part in split_documents(text) for found in _configurations(part)])
    cluster = mapping_of(data.get("physicalCluster"))
    left_out = [
        f"{key} was left out: a setting of HiveD's process" for key in SETTINGS if key in data
    ]
    left_out += [
        f"physicalCluster.{key} was left out: {SKU_REASON}" for key in SKU_KEYS if key in cluster
    ]
    kept: dict[str, object] = {"apiVersion": API_VERSION, "kind": "Cluster"}
    kept |= {key: _plain(value, key) for key, value in data.items() if key not in SETTINGS}
    if cluster:
        kept["physicalCluster"] = {
            key: _plain(value, key) for key, value in cluster.items() if key not in SKU_KEYS
        }
    document = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=1000)
    return document, [*left_out, *_warnings(document)]


def _only(found: list[Mapping[str, Plain]]) -> Mapping[str, Plain]:
    if len(found) == 1:
        return found[0]
    if found:
        raise SettingsError(
            f"the file has {count_of(len(found), 'configuration')} of HiveD, not one"
        )
    raise SettingsError(f"the file has no configuration of HiveD: {_LOOKED}")


def _configurations(text: str) -> Iterator[Mapping[str, Plain]]:
    """Yield the configurations of HiveD in one YAML document."""
    data, problems = parse_yaml(text)
    for found in objects_of(data):
        if _is_configuration(found):
            _check(problems)
            yield found
        config = mapping_of(found.get("hivedscheduler")).get("config")
        for value in (config, *mapping_of(found.get("data")).values()):
            yield from _within(value)


def _within(value: Plain) -> Iterator[Mapping[str, Plain]]:
    """Yield the configuration that a field holds, as text or as it is."""
    problems: list[Problem] = []
    if isinstance(value, str) and any(key in value for key in _KEYS):
        value, problems = parse_yaml(value)
    if _is_configuration(found := mapping_of(value)):
        _check(problems)
        yield found


def _is_configuration(data: Mapping[str, Plain]) -> bool:
    return any(key in data for key in _KEYS)


def _check(problems: list[Problem]) -> None:
    if problems:
        raise SpecError(problems)


def _plain(value: Plain, key: str) -> object:
    """Return a value that is read again as it was written: 0010 is the name of a node."""
    if isinstance(value, dict):
        return {name: _plain(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, key) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        written = as_written(value)
        return int(value) if key in _COUNTS else value if written == str(value) else written
    return value


def _warnings(document: str) -> list[str]:
    parsed = parse_document(document, kind=DocumentKind.CLUSTER)
    assert isinstance(parsed, ClusterDocument)
    return [str(warning) for warning in parsed.warnings]
