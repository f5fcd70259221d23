"""Pods, nodes, PodGroups and policy documents from Kubernetes, translated into our own types.

misfits      Pods that ask for devices in a way that makes no sense: told why, and their …
pod_feed     Pods and nodes from their feeds, passed on to the engine once it has recovered.
policy_feed  The documents that the extender works by: classes, and the cluster's cells.
requests     From a pod to what is asked of the engine: its gang's size, its priority, its …
topology     The cells follow the cluster document and, where they are derived, the nodes.
"""
