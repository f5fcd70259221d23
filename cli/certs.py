"""`cellgate certs`: creates certificates, and prints the commands that store them in a cluster."""

from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from certs.clients import SCHEDULER
from certs.store import CertificateStore
from extender.settings import service_hosts
from policy.errors import SettingsError
from service.exit_codes import Exit
from service.process import Stop

_SECRETS = {"cellgate-extender-certs": "extender", "cellgate-scheduler-certs": SCHEDULER}


async def make_certificates(options: Namespace, _: Stop) -> Exit:
    """Create certificates that are missing or expire soon; keep all others."""
    directory = Path(options.certs)
    store = CertificateStore(directory, serving="extender")
    if store.is_given:
        raise SettingsError(
            f"{store.ca_path} has no ca.key next to it: use the directory where the CA was created"
        )
    hosts = service_hosts(options.namespace)
    store.ensure(hosts=hosts, clients=[SCHEDULER], now=datetime.now(UTC))
    print(f"The certificates are in {directory}. Store them in the cluster with:\n")
    for secret, name in _SECRETS.items():
        print(_command(secret, options.namespace, [store.ca_path, *store.paths_of(name)]))
    print(f"\nKeep {store.paths_of('ca')[1]} secret: it can sign certificates for any caller.")
    return Exit.OK


def _command(secret: str, namespace: str, paths: list[Path]) -> str:
    """Return the shell command that creates or replaces a Secret."""
    files = " ".join(f"--from-file={path}" for path in paths)
    create = f"kubectl create secret generic {secret} -n {namespace} {files}"
    return f"{create} --dry-run=client -o yaml | kubectl apply --server-side -f -"
