"""Policy-defined fields of pods: node selectors, tolerations, resources, mounts.

guard   What shapes gave to a pod stays so: changes of a pod that exists which would undo …
shaper  Giving a pod what its shapes say. Pure: pod and shapes in, patch and words out.
"""
