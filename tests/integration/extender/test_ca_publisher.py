"""The published CA, beside a simulated cluster."""

import logging
from pathlib import Path

import pytest

from extender.upkeep.ca_publisher import CaPublisher
from kube.api.client import KubeClient
from kube.api.config_maps import CA_CONFIG_MAP, ConfigMapWriter

MAPS = "/api/v1/namespaces/cellgate-system/configmaps"


def _publisher(client: KubeClient, path: Path) -> CaPublisher:
    writer = ConfigMapWriter(
        client, namespace="cellgate-system", name=CA_CONFIG_MAP, check_leading=lambda: None
    )
    return CaPublisher(path, writer)


async def test_the_ca_is_published_whenever_it_has_changed(
    client: KubeClient, tmp_path: Path
) -> None:
    path = tmp_path / "ca.crt"
    publisher = _publisher(client, path)
    await client.request(
        "POST", MAPS, body={"metadata": {"name": CA_CONFIG_MAP}, "data": {"note": "kept"}}
    )
    for text in ("first", "second"):
        path.write_text(text)
        await publisher.step()
        stored = await client.request("GET", f"{MAPS}/{CA_CONFIG_MAP}")
        assert stored["data"] == {"note": "kept", "ca.crt": text}

    await publisher.step()
    after = await client.request("GET", f"{MAPS}/{CA_CONFIG_MAP}")
    assert after["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def test_a_missing_file_or_config_map_is_told_once(
    client: KubeClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ca.crt"
    publisher = _publisher(client, path)
    with caplog.at_level(logging.WARNING, logger="extender.upkeep.ca_publisher"):
        await publisher.step()
        await publisher.step()
        path.write_text("ca")
        await publisher.step()
        await publisher.step()
    # Without the path: the number of the temporary folder may be 404.
    errors = [vars(record)["error"].replace(str(path), "") for record in caplog.records]
    assert [
        ("No such file" in error, "404" in error or "not found" in error) for error in errors
    ] == [
        (True, False),
        (False, True),
    ]
