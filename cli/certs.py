"""`cellgate certs`: make certificates, and say how they get into a cluster."""

from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from certs.clients import SCHEDULER
from certs.store import CertificateStore
from extender.settings import service_hosts
from policy.errors import SettingsError
from service.process import Exit, Stop

_SECRETS = {"cellgate-extender-certs": "extender", "cellgate-scheduler-certs": SCHEDULER}


async def make_certificates(options: Namespace, _: Stop) -> Exit:
    """Make what is missing or about to expire; nothing else is touched."""
    directory = Path(options.certs)
    store = CertificateStore(directory, serving="extender")
    if store.is_given:
        raise SettingsError(
            f"{store.ca_path} has no key beside it: whoever made this CA makes the certificates"
        )
    hosts = service_hosts(options.namespace)
    store.ensure(hosts=hosts, clients=[SCHEDULER], now=datetime.now(UTC))
    print(f"The certificates are in {directory}. To put them into the cluster:\n")
    for secret, name in _SECRETS.items():
        print(_command(secret, options.namespace, [store.ca_path, *store.paths_of(name)]))
    print(f"\nKeep {store.paths_of('ca')[1]} where nobody else reads it.")
    return Exit.OK


def _command(secret: str, namespace: str, paths: list[Path]) -> str:
    """The shell line that makes a Secret, or replaces it."""
    files = " ".join(f"--from-file={path}" for path in paths)
    create = f"kubectl create secret generic {secret} -n {namespace} {files}"
    return f"{create} --dry-run=client -o yaml | kubectl apply --server-side -f -"
