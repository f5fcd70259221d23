"""The `cellgate` command: flags, environment variables, and which parts each command starts.

Only this package reads the environment. Nothing here decides about pods. May import every other
package; no package imports it.

The one idea: a command is a coroutine that takes its options and returns an exit code. A mistake in
the options or the environment is one line on standard error and exit code 2.

entry              the entry point of the `cellgate` program
main               arguments to an exit code
commands           all commands with their flags
late               loads the module of a command when it runs
options            flags, each with an environment variable `CELLGATE_<FLAG>`
shared_flags       flags that several commands share
what_if_flags      the flags of `cellgate what-if`
run                `cellgate run`: all services on one machine
simulated_cluster  the simulated cluster of `cellgate run`
banner             what `cellgate run` prints
serve              `cellgate extender` and `cellgate webhook`
stores             database, decision log and ledger of a service
migrate            `cellgate migrate`
certs              `cellgate certs`
check              `cellgate check`
log                `cellgate log` and `cellgate replay`: the decision log, and what it decided
whatif             `cellgate what-if`: the same arrivals under other policies or hardware
tune               `cellgate tune`: a search for better worths of the queue
policy_files       policy documents in files and ConfigMap manifests
imports            `cellgate import`: documents of other systems to Cellgate's
"""
