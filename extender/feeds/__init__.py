"""Pods, nodes, PodGroups and policy documents from Kubernetes, translated into our own types.

cluster_file  The file of `--cluster`: a Cluster document that is followed instead of a ConfigMap.
misfits      Pods that ask for devices in a way that makes no sense: told why, and their …
pod_feed     Pods and nodes from their feeds, passed on to the engine once it has recovered.
requests     From a pod to what is asked of the engine: its gang's size, its priority, its …
topology     The cells follow the cluster document and, where they are derived, the nodes.
"""
