"""What `cellgate run` prints for its user."""

import sys
from collections.abc import Sequence
from pathlib import Path

_TRY_SIMULATED = """\
Try in another terminal:

  curl {extender}/v1/gangs
      the gangs and their leaf cells
  curl '{extender}/v1/decisions?limit=5'
      the last decisions and their reasons; kept across restarts
  curl -si {cluster}/api/v1/namespaces/vision/pods -H 'Impersonate-User: alice' \\
    -H 'Content-Type: application/json' -d '{{"metadata": {{"name": "mine"}}, "spec": {{
    "priorityClassName": "prod", "containers": [{{"name": "main", "image": "any",
    "resources": {{"limits": {{"nvidia.com/gpu": "1"}}}}}}]}}}}'
      submit a pod as alice: see the Warning header, and the class that the pod got
"""

_TRY_REAL = """\
Try in another terminal:

  curl {extender}/v1/nodes
      the nodes with leaf cells, and the gangs on them
  curl {extender}/v1/gangs
      the gangs that were placed
  curl '{extender}/v1/decisions?limit=5'
      the last decisions and their reasons; kept across restarts

The cluster does not call these addresses yet: add them to its webhook configurations and to the
extenders of its kube-scheduler, as docs/install.md describes.
"""


def say_starting(*, makes_database: bool) -> None:
    """Print that Cellgate starts."""
    extra = " (creating the database takes some seconds)" if makes_database else ""
    print(f"Starting Cellgate{extra} …", flush=True)


def say_running(
    *, webhook: str, extender: str, cluster: str | None, kubeconfig: str, data: Path
) -> None:
    """Print the addresses, and what to try."""
    if cluster:
        where = (
            f"{cluster}  simulated: 16 nodes with 8 leaf cells each, and users that submit gangs"
        )
    else:
        where = f"from {kubeconfig}"
    hints = (_TRY_SIMULATED if cluster else _TRY_REAL).format(extender=extender, cluster=cluster)
    print(
        f"""\
Cellgate is ready. Press Ctrl-C to stop it. Data directory: {data}

  extender   {extender}   also /healthz /readyz /metrics /leader
  webhook    {webhook}  also /healthz /readyz /metrics; CA: {data / "certs" / "ca.crt"}
  cluster    {where}

{hints}""",
        flush=True,
    )


def say_failed(reasons: Sequence[str]) -> None:
    """Print why Cellgate stops without a request."""
    message = f"cellgate: stopped: {'; '.join(reasons)}; see the log above"
    print(message, file=sys.stderr, flush=True)


def say_stopping() -> None:
    """Print that Cellgate stops."""
    print("\nStopping Cellgate …", flush=True)
