"""HiveD's annotations and its YAML. Pure.

bind_info    HiveD's placement annotations: `pod-bind-info` and `pod-leaf-cell-isolation`.
spec         HiveD's pod annotation `pod-scheduling-spec`: what a HiveD user asks for.
yaml_fields  Reading a YAML mapping field by field, as HiveD does with Go's yaml.v2.
yaml_tree    YAML that somebody else wrote, as a tree of what was written.
"""
