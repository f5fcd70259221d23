"""All commands of the command line, with their flags."""

import argparse
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version

from cli.certs import make_certificates
from cli.check import check_policies
from cli.import_rules import import_table
from cli.migrate import migrate_database
from cli.options import Options, Parser, data_directory
from cli.run import run_everything
from cli.serve import serve_extender, serve_webhook
from service.process import Exit, Stop
from state.database.maintenance import RetentionSettings

Command = Callable[[Namespace, Stop], Awaitable[Exit]]

_KEPT = {
    "log": "how long decisions are kept, to be explained and replayed",
    "history": "how long runs of gangs, past charges and documents are kept",
    "totals": "how long hours by day are kept",
}
_LEVELS = ("debug", "info", "warning", "error")


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Build the parser of all commands; `options.command` is what to run."""
    parser = Parser(
        prog="cellgate",
        description="A fair, safe and explainable shared Kubernetes GPU cluster.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=version("cellgate"))
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)

    def add(name: str, *, about: str, command: Command) -> Options:
        one = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        one.set_defaults(command=command)
        return Options(one, environment)

    _run(add("run", about="Run everything on this machine.", command=run_everything), environment)
    _extender(add("extender", about="Serve kube-scheduler.", command=serve_extender), environment)
    _webhook(add("webhook", about="Serve the API server.", command=serve_webhook), environment)
    _migrate(add("migrate", about="Bring the schema up to date.", command=migrate_database))
    _check(add("check", about="Validate policies in files.", command=check_policies))
    _import(add("import", about="Take over policies from elsewhere.", command=import_table))
    certs = "Make certificates for the extender and its kube-scheduler."
    _certs(add("certs", about=certs, command=make_certificates), environment)
    return parser


def _run(options: Options, environment: Mapping[str, str]) -> None:
    data = str(data_directory(environment) or "") or None
    options.add("--data-dir", default=data, is_required=True, about="where data is kept")
    options.add("--kubeconfig", about="attach to this cluster instead of a simulated one")
    options.add("--database-url", about="use this database instead of an embedded one")
    _state(options)
    _namespace(options)
    options.add_address("--extender-listen", default="127.0.0.1:9096", about="the extender's place")
    options.add_address("--webhook-listen", default="127.0.0.1:9443", about="the webhook's place")
    options.add_address(
        "--cluster-listen", default="127.0.0.1:9080", about="the simulated API server's place"
    )
    _log_level(options, default="warning")


def _extender(options: Options, environment: Mapping[str, str]) -> None:
    _service(options, environment, listen="127.0.0.1:9096")
    options.add("--cluster", about="file of the cluster document, instead of a ConfigMap")
    options.add("--pod-name", about="our own pod, labelled while it leads")
    _directory_of_certificates(options, environment, is_required=False)
    options.add_switch("--tls", about="serve TLS on loopback, too")
    options.add_switch("--insecure-http", about="serve plain HTTP beyond loopback")


def _webhook(options: Options, environment: Mapping[str, str]) -> None:
    _service(options, environment, listen="127.0.0.1:9443")
    _directory_of_certificates(options, environment, is_required=False)
    options.add("--certs-secret", about="share certificates by this Secret, not by a directory")
    options.add(
        "--ca-overlap-seconds",
        default="604800",
        about="how long a new CA is known before it signs, with --certs-secret",
        read=_read_seconds,
    )
    options.add("--client-ca", about="file of the CA whose certificate the API server must show")
    options.add(
        "--client-names",
        about="common names, with commas between, that such a certificate may have; default any",
        read=_read_names,
    )
    options.add(
        "--linger-seconds",
        default="3",
        about="how long to go on answering when asked to end, until callers have noticed",
        read=_read_seconds,
    )
    options.add("--pod-name", about="our own pod, by which we lead")
    options.add(
        "--policy-admins",
        default="system:masters,kubeadm:cluster-admins",
        about="users and groups, with commas between, who may change every policy document",
        read=_read_names,
    )
    options.add(
        "--binders",
        default="system:kube-scheduler",
        about="users and groups, with commas between, who may bind managed pods beside Cellgate",
        read=_read_names,
    )
    options.add_switch(
        "--gate-queued-only",
        about="hold only gangs over quota; all others go to kube-scheduler at once, HiveD's way",
    )


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _read_seconds(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(f"must be a whole number of seconds, not {text!r}")
    return float(text)


def _certs(options: Options, environment: Mapping[str, str]) -> None:
    _directory_of_certificates(options, environment)
    _namespace(options)
    _log_level(options, default="warning")


def _migrate(options: Options) -> None:
    _database_url(options)
    _log_level(options, default="info")


def _check(options: Options) -> None:
    options.add_files("FILE", about="policy documents or manifests of their ConfigMaps; - is stdin")
    _log_level(options, default="warning")


def _import(options: Options) -> None:
    options.add_argument("what", choices=("rules",), about="what the file holds: rules")
    options.add_argument("file", about="a rule table: Markdown, CSV or an SQL dump; - is stdin")
    _log_level(options, default="warning")


def _service(options: Options, environment: Mapping[str, str], *, listen: str) -> None:
    """Flags that both services share."""
    options.add_address("--listen", default=listen, about="where to serve")
    is_in_cluster = "KUBERNETES_SERVICE_HOST" in environment
    kubeconfig = None if is_in_cluster else environment.get("KUBECONFIG")
    options.add("--kubeconfig", default=kubeconfig, about="the cluster; else the one we run in")
    _database_url(options)
    _state(options)
    options.add("--spool-dir", about="keep decisions here while the database is away")
    _namespace(options)
    _log_level(options, default="info")


def _directory_of_certificates(
    options: Options, environment: Mapping[str, str], *, is_required: bool = True
) -> None:
    data = data_directory(environment)
    about = "directory of CA and certificates; made when missing"
    default = str(data / "certs") if data else None
    options.add("--certs", default=default, is_required=is_required, about=about)


def _database_url(options: Options) -> None:
    forms = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or embedded:DIR"
    options.add("--database-url", is_required=True, about=forms)


def _state(options: Options) -> None:
    """Flags of everything that uses the database."""
    options.add(
        "--database-listen-url",
        about="PostgreSQL's own address, where --database-url leads to a pooler such as PgBouncer",
    )
    kept = RetentionSettings()
    for what, days in (
        ("log", kept.log_days),
        ("history", kept.history_days),
        ("totals", kept.totals_days),
    ):
        options.add_days(f"--keep-{what}-days", default=days, about=_KEPT[what])


def _namespace(options: Options) -> None:
    options.add("--namespace", default="cellgate-system", about="where policy documents are")


def _log_level(options: Options, *, default: str) -> None:
    options.add_choice("--log-level", default=default, choices=_LEVELS, about="what to log")
