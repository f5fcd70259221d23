"""HiveD's pod annotation, read as HiveD reads it. Pure.

The one idea: a pod that was written for HiveD works unchanged. What HiveD accepts is accepted, with
the same defaults, and problems begin with HiveD's own words. HiveD's cluster configuration is not
here but in `policy.cluster`; its record of a placement is in `kube.placement_annotations`.

May be imported by the rest of `kube`; imports `kube.values` and `policy`.

    spec         The annotation `pod-scheduling-spec`: what a HiveD user asks for.
    yaml_values  Fields of a YAML mapping, as Go's yaml.v2 reads them.
"""
