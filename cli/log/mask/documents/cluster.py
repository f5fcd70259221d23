"""Cluster documents: read, masked by their form, and written as JSON, which is YAML. Pure."""

from typing import Any, Final, cast

import orjson

from cli.log.mask.fields import (
    LeftOutError,
    Mask,
    Pass,
    each,
    fields,
    mapping,
    number,
    number_text,
    object_of,
    optional,
    words,
)
from cli.log.mask.structures import (
    cell_part,
    domain,
    dotted_type,
    key,
    label_value,
    pinned,
    type_name,
    vc,
)
from policy.cluster.fields import check_flag
from policy.cluster.hived import is_hived
from policy.documents.models import API_VERSION
from policy.documents.yaml_text import as_written, parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import SpecError

_HEAD: Final = {
    "apiVersion": words(API_VERSION),
    "kind": words("Cluster"),
    "foreign": words("keep", "reclaim"),
    "quarantine": optional(
        fields(
            dict.fromkeys(
                ("workloads", "submitters", "withinSeconds", "failWithinSeconds", "forSeconds"),
                number,
            )
        )
    ),
}

_derived: Final = fields(
    {
        **_HEAD,
        "nodeTopology": each(
            fields(
                {
                    "name": domain,
                    "nodeSelector": mapping(key, label_value),
                    "levels": each(key),
                    "leafResource": key,
                    "leafTypeLabel": key,
                }
            )
        ),
        "virtualClusters": mapping(
            vc,
            fields(
                {
                    "virtualCells": each(
                        fields(
                            {
                                "leafType": type_name,
                                "level": key,
                                "cellNumber": number,
                                "domain": domain,
                            }
                        )
                    )
                }
            ),
        ),
        "expectedNodes": each(
            fields({"leafType": type_name, "nodes": number, "leafCells": number, "domain": domain})
        ),
    }
)


def _scalar(inner: Mask) -> Mask:
    """Read a value as HiveD does: any scalar is a text as it was written."""

    def mask(value: object, now: Pass, where: str) -> object:
        if isinstance(value, dict | list):
            raise LeftOutError(where)
        return inner(as_written(value), now, where)

    return mask


def _flag(value: object, _: Pass, where: str) -> object:
    """Keep true or false, also as YAML 1.1 writes them."""
    try:
        return check_flag(value)
    except ValueError as exc:
        raise LeftOutError(where) from exc


def _physical_cell(value: object, now: Pass, where: str) -> object:
    return _cell(value, now, where)


_cell: Final = optional(
    fields(
        {
            "cellType": _scalar(type_name),
            "cellAddress": _scalar(cell_part),
            "pinnedCellId": _scalar(pinned),
            "cellChildren": optional(each(_physical_cell)),
        },
        has_effect=False,
    )
)
_cell_types: Final = mapping(
    type_name,
    optional(
        fields(
            {
                "childCellType": _scalar(type_name),
                "childCellNumber": number_text,
                "isNodeLevel": _flag,
            },
            has_effect=False,
        )
    ),
)
_promise: Final = fields({"cellType": _scalar(dotted_type), "cellNumber": number}, has_effect=False)
_pinned_promise: Final = fields({"pinnedCellId": _scalar(pinned)}, has_effect=False)
_listed: Final = fields(
    {
        **_HEAD,
        "physicalCluster": optional(
            fields(
                {
                    "cellTypes": optional(_cell_types),
                    "physicalCells": optional(each(_cell)),
                },
                has_effect=False,
            )
        ),
        "virtualClusters": optional(
            mapping(
                vc,
                optional(
                    fields(
                        {
                            "virtualCells": optional(each(optional(_promise))),
                            "pinnedCells": optional(each(optional(_pinned_promise))),
                        },
                        has_effect=False,
                    )
                ),
            )
        ),
    },
    has_effect=False,
)


def mask_cluster(text: str, now: Pass, where: str) -> str:
    """Mask the text of a Cluster document. Raises LeftOutError if it is none."""
    data = read_document(text, where)
    now.are_cells_listed = is_hived(data)
    now.has_listed_cells |= now.are_cells_listed
    masked = (_listed if now.are_cells_listed else _derived)(data, now, where)
    return orjson.dumps(masked).decode()


def mask_cluster_data(value: object, now: Pass, where: str) -> object:
    """Mask a Cluster document within a policy."""
    data = object_of(value, where)
    before, now.are_cells_listed = now.are_cells_listed, is_hived(cast(dict[str, Plain], data))
    try:
        return (_listed if now.are_cells_listed else _derived)(data, now, where)
    finally:
        now.are_cells_listed = before


def read_document(text: str, where: str) -> dict[str, Any]:
    """Read the mapping that a document is. Raises LeftOutError."""
    try:
        data, _ = parse_yaml(text)
    except SpecError as exc:
        raise LeftOutError(where) from exc
    if data is not None and not isinstance(data, dict):
        raise LeftOutError(where)
    return data or {}
