"""A real Kubernetes control plane for tests, made of plain processes on loopback.

One noun per file, from the ground up:

    gomodule, gobuild, binaries   the programs: built once per Kubernetes version, then cached
    launcher, processes, group    children that cannot outlive the test run
    ports, scratch, certificates  what a control plane needs around it
    waiting                       polling with a deadline
    identity, api, kubectl        who speaks to it, and how
    nodes, kwok.yaml              fake GPU nodes and the fake kubelet on them
    components, readiness         command lines, and why a component does not come up
    cluster                       `ControlPlane`, which starts and stops it all
    forwarder                     a stand-in for a Service: TCP to whichever backend is ready

Nothing here knows about Cellgate: its services are processes under test like any other.
"""
