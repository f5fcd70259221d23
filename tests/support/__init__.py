"""What tests of several folders share: builders, small worlds to drive, services to start.

May be imported by all tests and by `bench`; imports the product and `tests.controlplane`, never a
test. There is one builder per thing; a test states only what matters to it. A part that one folder
of tests uses alone stays in that folder.

    cells/      clusters and gangs for the engine; an engine to drive; brute force to compare with
    queue/      the planner with a small cluster around it
    timemachine/  small worlds and arrivals
    policy/     policy documents, submissions, cluster documents
    kube/       Kubernetes objects as JSON: pods, nodes, PodGroups, ConfigMaps
    extender/   the extender's parts without a network
    webhook/    admission and reviews without HTTP
    state/      charges, log records; PostgreSQL servers and broken connections
    services/   the services running beside a simulated cluster
    twins/      the ledger, the log and the history in memory
    installed/  Cellgate installed on a real control plane
    documents/  the examples and tables of the documents
    whatif/     what-if results, and reports as browsers read them
    browser/    a real browser, where one is installed
    clocks      clocks that stand still unless a test advances them
    eventually  waiting for a condition
    examples    how many examples of a slow property test are played
    background  work that runs beside a test
    handshakes  TLS handshakes in memory
"""
