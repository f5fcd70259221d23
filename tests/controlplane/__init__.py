"""A real Kubernetes control plane for tests, made of plain processes on loopback.

Nothing here knows about Cellgate: its services are processes under test like any other. One noun
per file, from the ground up:

    golang/       the Go programs of Kubernetes: how to build them
    binaries      the programs: built once per Kubernetes version, then cached
    launcher      starts a program that dies with its parent
    processes     a child process: its log, its end
    group         the processes of one control plane
    ports         free ports
    scratch       temporary folders
    certificates  keys and certificates of the control plane
    waiting       polling with a deadline
    identity      users, tokens, kubeconfigs
    api           a JSON client of the API server
    kubectl       the kubectl program
    nodes         fake GPU nodes; `kwok.yaml` is their fake kubelet
    components    command lines of the components
    readiness     why a component does not become ready
    cluster       `ControlPlane`, which starts and stops everything
    forwarder     a stand-in for a Service: TCP to a backend that is ready
"""
