"""Kubernetes objects as JSON. A builder is the object itself; each step returns a changed copy.

objects         the steps that all builders share
pods            `a_pod`, `a_new_pod`, `a_hived_pod`
nodes           `a_node`
pod_groups      `a_pod_group`, and members of its gang
workloads       `a_workload`, `a_template`
config_maps     `a_policy_map`: the ConfigMap of a policy document
custom_kinds    CustomResourceDefinitions of other projects' workloads
stored_objects  objects in the store of the simulated API server
events          an Event writer that keeps what would be written
"""
