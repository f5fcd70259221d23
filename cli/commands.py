"""All commands of the command line, with their flags.

The module of a command is loaded when the command runs (`cli.late`): help does not wait for it.
"""

import argparse
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from cli import late
from cli.imports.kinds import ImportKind, Occupied
from cli.options import Options, Parser, data_directory
from cli.shared_flags import (
    URL_FORMS,
    add_database_url,
    add_general,
    add_own_database_url,
    add_time,
    own_database,
)
from cli.tune.flags import TUNE, add_tune
from cli.what_if_flags import WHAT_IF, add_what_if
from extender.defaults import HOLD_SECONDS
from state.database.retention import RetentionSettings

_ABOUT = """\
Cellgate shares the GPUs of a Kubernetes cluster. An admission webhook applies
priority rules and quotas when pods are created; a scheduler extender places
gangs of pods by topology.

Commands:
"""
_EPILOG = """\
Run 'cellgate COMMAND --help' for the flags of a command. Each flag can also be
set by an environment variable, such as CELLGATE_LOG_LEVEL for --log-level."""
_RUN = """\
Run the webhook, the extender and an embedded PostgreSQL database on this
machine. Without --kubeconfig they run with a simulated Kubernetes cluster.

Examples:
  cellgate run
  cellgate run --kubeconfig ~/.kube/config"""
_EXTENDER = """\
Run the scheduler extender. kube-scheduler calls it to place pods. With several
replicas one leads, and the others take over when it ends."""
_WEBHOOK = """\
Run the admission webhook. The API server calls it when pods, workloads and
policy documents are created or changed."""
_MIGRATE = """\
Apply pending migrations to the database. The services do so when they start:
use this command if their database user may not change the schema."""
_CERTS = """\
Create a CA, and certificates for the extender and kube-scheduler. Print the
kubectl commands that store them in the cluster. Existing certificates are kept
unless they expire soon."""
_CHECK = """\
Validate policy documents as the webhook does at 'kubectl apply', and print all
problems. The exit code is 1 if there are any.

Examples:
  cellgate check policies/*.yaml
  kubectl get configmaps -n cellgate-system -o yaml | cellgate check -"""
_IMPORT = """\
Convert a document of another system to a policy document, and print it: a rule
table to a Rules document, or the configuration of HiveD or OpenPAI to a Cluster
document. What cannot be converted, or has another meaning here, is reported on
standard error.

Examples:
  cellgate import rules rules.sql > rules.yaml
  cellgate import hived service-configuration.yaml > cluster.yaml"""
_LOG = """\
Move a stretch of the decision log between a database and a file. The file is
gzip'd JSON, one row on each line.

Actions:
  export    Write a stretch of the log to a file
  import    Store the rows of a file in the log

Run 'cellgate log ACTION --help' for the flags of an action."""
_LOG_EXPORT = """\
Write a stretch of the decision log to a file, with the documents that its rows
refer to. The file is enough to replay it: an epoch of the extender (the time in
which one replica led) that began before --from is written from its first row
on. With --subject, the file has the epochs in which the gang has rows, up to
its last row. The file names users, gangs, nodes and policies, unless it is
masked: with --mask, it has pseudonyms instead of all names, labels and texts,
and still replays as the log does.

Examples:
  cellgate log export --from 2h day.jsonl.gz
  cellgate log export --from 2h --mask report.jsonl.gz
  cellgate log export --from 2026-03-01 --to 2026-03-02 day.jsonl.gz"""
_LOG_IMPORT = """\
Store the rows of a file in the decision log. A file goes into an empty
database, or into the database that it came from; any other is refused. Rows
that are stored already stay as they are. A file that is damaged or incomplete
is refused before anything is stored. Runs in the history are not changed.

Example:
  cellgate log import day.jsonl.gz --database-url embedded:scratch"""
_REPLAY = """\
Decide again what the extender decided (places, preemptions, ranks,
reservations, lifted gates) and in which class the webhook admitted each gang,
from the decision log or from an exported file, and compare each decision.
Epochs of the extender that have rows in the time are replayed from their first
row on. What differs is shown, with what it depended on. The exit code is 0 if
all decisions are identical, 1 if some differ or rows are missing, and 2 if the
call is wrong.

Not decided again yet: which gang is planned next, when reservations are looked
at, and why they end. These are taken from the log.

Examples:
  cellgate replay --from 2h
  cellgate replay --file day.jsonl.gz --subject team-a/bert"""


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]


class _ShowVersion(argparse.Action):
    """Prints the version: it is looked up only when it is wanted."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(version("cellgate"))
        parser.exit()


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Build the parser of all commands; `options.command` is the command to run."""
    parser = Parser(prog="cellgate", usage="cellgate COMMAND [FLAGS]", epilog=_EPILOG)
    commands = parser.add_subparsers(
        prog="cellgate", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    flags = parser.add_argument_group("Flags")
    flags.add_argument("-h", "--help", action="help", help="Show this help")
    flags.add_argument("--version", action=_ShowVersion, nargs=0, help="Show the version")
    summaries: list[str] = []

    def add(name: str, summary: str, about: str, command: late.Command) -> Options:
        name, _, arguments = name.partition(" ")
        summaries.append(f"  {name:10}{summary}")
        usage = f"cellgate {name} [FLAGS] {arguments}".strip()
        return _command(commands, environment, name, usage, about, command)

    _run(add("run", "Run all services on this machine", _RUN, late.run_everything), environment)
    _extender(
        add("extender", "Run the scheduler extender", _EXTENDER, late.serve_extender),
        environment,
    )
    _webhook(
        add("webhook", "Run the admission webhook", _WEBHOOK, late.serve_webhook),
        environment,
    )
    _migrate(add("migrate", "Apply database migrations", _MIGRATE, late.migrate_database))
    _certs(add("certs", "Create certificates", _CERTS, late.make_certificates), environment)
    _check(add("check FILE…", "Validate policy documents", _CHECK, late.check_policies))
    _import(
        add(
            "import KIND FILE",
            "Convert documents of another system",
            _IMPORT,
            late.import_file,
        )
    )
    _replay(add("replay", "Decide a stretch of the log again", _REPLAY, late.replay), environment)
    add_what_if(
        add("what-if", "Try other policies or hardware on past gangs", WHAT_IF, late.what_if),
        environment,
    )
    add_tune(add("tune", "Search for better worths of the queue", TUNE, late.tune), environment)
    summaries.append("  log       Export and import the decision log")
    _log(commands, environment)
    parser.description = _ABOUT + "\n".join(summaries)
    return parser


def _command(
    commands: "Commands",
    environment: Mapping[str, str],
    name: str,
    usage: str,
    about: str,
    command: late.Command,
) -> Options:
    one = commands.add_parser(name, usage=usage, description=about)
    one.set_defaults(command=command)
    return Options(one, environment)


def _run(options: Options, environment: Mapping[str, str]) -> None:
    data = str(data_directory(environment) or "") or None
    options.add("--data-dir DIR", "Directory for all data", default=data, is_required=True)
    options.add("--kubeconfig FILE", "Connect to this cluster instead of a simulated one")
    _namespace(options)
    options.add_address("--extender-listen", "Address of the extender", default="127.0.0.1:9096")
    options.add_address("--webhook-listen", "Address of the webhook", default="127.0.0.1:9443")
    simulated = "Address of the simulated API server"
    options.add_address("--cluster-listen", simulated, default="127.0.0.1:9080")
    add_general(options, log_level="warning")
    options.begin("Database flags")
    options.add("--database-url URL", "Use this database instead of an embedded one")
    _database(options)


def _extender(options: Options, environment: Mapping[str, str]) -> None:
    options.add_address("--listen", "Address to serve on", default="127.0.0.1:9096")
    options.add_switch("--tls", "Serve TLS on a loopback address too")
    options.add_switch("--insecure-http", "Serve plain HTTP on an address other than loopback")
    _certificates(options, environment)
    options.add_switch(
        "--gentle-reclaim", "End preempted workloads by suspending and resuming them, if possible"
    )
    options.add("--cluster FILE", "Read the cluster document from a file, not a ConfigMap")
    hold = "How long to hold bindings until all members of a gang can be bound"
    options.add_seconds("--hold-seconds", hold, default=HOLD_SECONDS)
    options.add(
        "--provisioning-class NAME",
        "Ask an autoscaler for nodes for waiting gangs, by ProvisioningRequests of this class",
    )
    _service(options, environment)


def _webhook(options: Options, environment: Mapping[str, str]) -> None:
    options.add_address("--listen", "Address to serve on", default="127.0.0.1:9443")
    linger = "How long to serve after SIGTERM, until callers stop using this replica"
    options.add_seconds("--linger-seconds", linger, default=3)
    options.add_names(
        "--policy-admins",
        "Users and groups that may change every policy document",
        default="system:masters,kubeadm:cluster-admins",
    )
    binders = "Users and groups, besides Cellgate, that may bind managed pods"
    options.add_names("--binders", binders, default="system:kube-scheduler")
    options.add_switch(
        "--gentle-reclaim", "The extender has this flag, too: give no advice on preempted Jobs"
    )
    options.add_switch(
        "--gate-queued-only",
        "Gate only gangs over quota; other pods go to kube-scheduler at once, as with HiveD",
    )
    _service(options, environment)
    options.begin("Certificate flags")
    _certificates(options, environment)
    options.add("--certs-secret NAME", "Keep certificates in this Secret, not in a directory")
    overlap = "How long a new CA is published before it signs, with --certs-secret"
    options.add_seconds("--ca-overlap-seconds", overlap, default=604800)
    options.add("--client-ca FILE", "Require a client certificate of this CA from callers")
    options.add_names("--client-names", "Common names of client certificates (default any)")


def _migrate(options: Options) -> None:
    add_database_url(options)
    add_general(options, log_level="info")


def _certs(options: Options, environment: Mapping[str, str]) -> None:
    _certificates(options, environment, is_required=True)
    _namespace(options)
    add_general(options, log_level="warning")


def _check(options: Options) -> None:
    options.begin("Arguments")
    about = "Policy documents or ConfigMap manifests; - reads standard input"
    options.add_argument("files", "FILE", about, nargs="+")
    options.begin("Flags")
    add_general(options, log_level="warning")


def _import(options: Options) -> None:
    options.begin("Arguments")
    kinds = tuple(map(str, ImportKind))
    options.add_argument("what", "KIND", f"What to convert: {' or '.join(kinds)}", choices=kinds)
    about = "Rule table (Markdown, CSV, SQL dump) or HiveD's YAML; - reads standard input"
    options.add_argument("file", "FILE", about)
    options.begin("Flags")
    options.add_choice(
        "--occupied WHAT",
        "What the occupied column counts in rows for low classes only",
        default=Occupied.LOW,
        choices=tuple(map(str, Occupied)),
    )
    add_general(options, log_level="warning")


def _replay(options: Options, environment: Mapping[str, str]) -> None:
    options.add("--file FILE", "Replay this exported file; no database is needed")
    own = own_database(environment)
    about = URL_FORMS if own else f"{URL_FORMS} (required without --file)"
    options.add("--database-url URL", about, default=own)
    add_time(options)
    options.add("--subject GANG", "Only epochs with rows about NAMESPACE/NAME, up to its last row")
    options.add_switch("--json", "Print JSON, with up to 20 differences of each epoch")
    add_general(options, log_level="warning")


def _log(commands: "Commands", environment: Mapping[str, str]) -> None:
    log = commands.add_parser("log", usage="cellgate log ACTION [FLAGS] FILE", description=_LOG)
    log.add_argument_group("Flags").add_argument(
        "-h", "--help", action="help", help="Show this help"
    )
    actions = log.add_subparsers(
        prog="cellgate log", metavar="ACTION", required=True, help=argparse.SUPPRESS
    )
    usage = "cellgate log export [FLAGS] FILE"
    options = _command(actions, environment, "export", usage, _LOG_EXPORT, late.export_log)
    options.begin("Arguments")
    options.add_argument("file", "FILE", "File to write; an existing one is replaced")
    options.begin("Flags")
    add_own_database_url(options, environment)
    add_time(options)
    options.add("--subject GANG", "Only epochs and other rows about NAMESPACE/NAME")
    options.add_switch("--mask", "Write pseudonyms instead of names, for a file that others read")
    options.add("--mask-key FILE", "With --mask: write the names behind the pseudonyms, for you")
    add_general(options, log_level="warning")
    usage = "cellgate log import [FLAGS] FILE"
    options = _command(actions, environment, "import", usage, _LOG_IMPORT, late.import_log)
    options.begin("Arguments")
    options.add_argument("file", "FILE", "File that cellgate log export wrote")
    options.begin("Flags")
    add_database_url(options)
    add_general(options, log_level="warning")


def _service(options: Options, environment: Mapping[str, str]) -> None:
    """Add the flags that both services share."""
    is_in_cluster = "KUBERNETES_SERVICE_HOST" in environment
    kubeconfig = None if is_in_cluster else environment.get("KUBECONFIG")
    about = "Cluster to connect to; otherwise the cluster of this pod, or $KUBECONFIG"
    options.add("--kubeconfig FILE", about, default=kubeconfig)
    _namespace(options)
    options.add("--pod-name NAME", "Name of this pod, for leader election")
    add_general(options, log_level="info")
    options.begin("Database flags")
    add_database_url(options)
    _database(options)
    options.add("--spool-dir DIR", "Keep decisions here while the database is unavailable")


def _certificates(
    options: Options, environment: Mapping[str, str], *, is_required: bool = False
) -> None:
    data = data_directory(environment)
    default = str(data / "certs") if data else None
    about = "Directory of the CA and certificates; created if missing"
    options.add("--certs DIR", about, default=default, is_required=is_required)


def _database(options: Options) -> None:
    """Add the flags of all commands that run services."""
    about = "Direct address of PostgreSQL if --database-url is a pooler such as PgBouncer"
    options.add("--database-listen-url URL", about)
    kept = RetentionSettings()
    options.add_days("--keep-log-days", "Days to keep decisions", default=kept.log_days)
    about = "Days to keep runs of gangs, past charges and documents"
    options.add_days("--keep-history-days", about, default=kept.history_days)
    options.add_days("--keep-totals-days", "Days to keep daily totals", default=kept.totals_days)


def _namespace(options: Options) -> None:
    about = "Namespace of Cellgate and of the policy documents"
    options.add("--namespace NAME", about, default="cellgate-system")
