"""All tests. CONTRIBUTING.md lists the commands; tests/architecture/test_tests.py keeps the rules.

    architecture/   layers, maps, file sizes: rules about the source itself
    unit/           one module of the product each, in a folder of the same name; no database
    property/       what holds for any input, drawn by hypothesis or from seeds
    contract/       the same suite on a twin in memory and on the real thing
    integration/    the services with a real Postgres and a simulated cluster
    compatibility/  what earlier commits have written is still read
    fuzz/           hostile input over HTTP
    chaos/          processes killed at random, then the books are checked
    zoo/            workloads of every kind at random on a real control plane, for as long as asked
    mutations/      the engine is broken on purpose, and a named test must fail
    e2e/            the services on a real Kubernetes control plane
    controlplane/   that control plane
    support/        what tests of several folders share: builders, worlds, services

No test module imports another one, and `unit` and `property` do not import each other: what they
share is in `support`.
"""
