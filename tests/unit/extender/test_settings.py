"""When the extender serves TLS, and which settings are not safe."""

from pathlib import Path

import pytest

from extender.settings import ExtenderSettings
from policy.errors import SettingsError
from service.settings import Address

LOOPBACK = Address(host="127.0.0.1", port=9096, flag="--listen")
ANYWHERE = Address(host="0.0.0.0", port=9096, flag="--listen")
CERTS = Path("certs")


@pytest.mark.parametrize(
    ("settings", "serves_tls"),
    [
        (ExtenderSettings(address=LOOPBACK), False),
        (ExtenderSettings(address=LOOPBACK, certificates=CERTS), False),
        (ExtenderSettings(address=LOOPBACK, certificates=CERTS, wants_tls=True), True),
        (ExtenderSettings(address=ANYWHERE, certificates=CERTS), True),
        (ExtenderSettings(address=ANYWHERE, allows_insecure_http=True), False),
    ],
)
def test_only_loopback_is_plain_unless_said_otherwise(
    settings: ExtenderSettings, serves_tls: bool
) -> None:
    settings.check()
    assert settings.serves_tls is serves_tls


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            ExtenderSettings(address=ANYWHERE),
            "--listen 0.0.0.0:9096 is not loopback, and verbs can bind pods: name a directory for "
            "certificates with `cellgate extender --certs DIR`, or serve plain HTTP on 127.0.0.1",
        ),
        (
            ExtenderSettings(address=LOOPBACK, wants_tls=True),
            "--tls was given: name a directory for certificates with `cellgate extender --certs "
            "DIR`, or serve plain HTTP on 127.0.0.1",
        ),
        (
            ExtenderSettings(
                address=ANYWHERE, certificates=CERTS, wants_tls=True, allows_insecure_http=True
            ),
            "--tls and --insecure-http exclude each other; give one of them",
        ),
        (
            ExtenderSettings(address=LOOPBACK, hold_seconds=0),
            "--hold-seconds must be at least 10: kube-scheduler needs time for a gang",
        ),
    ],
)
def test_what_is_not_safe_is_refused_with_the_way_out(
    settings: ExtenderSettings, told: str
) -> None:
    with pytest.raises(SettingsError) as error:
        settings.check()
    assert str(error.value) == told
