"""What `cellgate run` tells the person who started it."""

import sys
from collections.abc import Sequence
from pathlib import Path

_TRY_SIMULATED = """\
Three things to try in another terminal:

  curl {extender}/v1/gangs
      who has which leaf cells
  curl '{extender}/v1/decisions?limit=5'
      what was decided last, and why; kept over restarts
  curl -si {cluster}/api/v1/namespaces/vision/pods -H 'Impersonate-User: alice' \\
    -H 'Content-Type: application/json' -d '{{"metadata": {{"name": "mine"}}, "spec": {{
    "priorityClassName": "prod", "containers": [{{"name": "main", "image": "any",
    "resources": {{"limits": {{"nvidia.com/gpu": "1"}}}}}}]}}}}'
      submit a pod as alice; see the Warning, and the class it got
"""

_TRY_REAL = """\
Three things to try in another terminal:

  curl {extender}/v1/nodes
      the nodes with leaf cells, and who has them
  curl {extender}/v1/gangs
      the gangs that were placed
  curl '{extender}/v1/decisions?limit=5'
      what was decided last, and why; kept over restarts

The cluster calls Cellgate when its webhook configurations and the extender of its kube-scheduler
name these addresses: see docs/install.md.
"""


def say_starting(*, makes_database: bool) -> None:
    """Show that something happens."""
    extra = " (the first time it makes a database: some seconds)" if makes_database else ""
    print(f"Cellgate starts{extra} …", flush=True)


def say_running(
    *, webhook: str, extender: str, cluster: str | None, kubeconfig: str, data: Path
) -> None:
    """Tell what is served where, and what to do with it."""
    if cluster:
        where = f"{cluster}  simulated: 16 nodes of 8 leaf cells, and users who submit gangs"
    else:
        where = f"the one of {kubeconfig}"
    hints = (_TRY_SIMULATED if cluster else _TRY_REAL).format(extender=extender, cluster=cluster)
    print(
        f"""\
Cellgate is ready. Ctrl-C ends it; its data stays in {data}.

  extender   {extender}   also /healthz /readyz /metrics /leader
  webhook    {webhook}  also /healthz /readyz /metrics; CA: {data / "certs" / "ca.crt"}
  cluster    {where}

{hints}""",
        flush=True,
    )


def say_broken(reasons: Sequence[str]) -> None:
    """Tell why it ends by itself; the log above has the details."""
    print(f"cellgate: {'; '.join(reasons)}; the log says why", file=sys.stderr, flush=True)


def say_ending() -> None:
    """Show that Ctrl-C was heard."""
    print("\nCellgate ends …", flush=True)
