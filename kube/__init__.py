"""Everything that knows Kubernetes: its objects, its API, its watches.

The one idea: a Kubernetes object is translated into our own types once, here. Of the other packages
only `webhook` reads its JSON, in order to patch it. `values`, `hived`, `read`, `shaping` and
`admission` are pure; only `api` sends requests, and `follow` keeps what its feeds deliver. Nothing
here decides where a pod goes, in which class, or whether it may be created: `policy`, `extender`
and `webhook` do.

May be imported by `extender`, `webhook`, `simulation`, `cli` and `bench`; imports `policy`, and the
clock and the bounded memories of `service`.
Within it, `admission` may use `shaping` and `read`, `api` and `follow` may use `read`, `read` may
use `hived`, and all may use `values`.

    marks                  The names of all labels, annotations, gates and resources that we use.
    placement_annotations  Formats and parses the annotations that say where a pod was put.
    admission/             A new pod as a request to rules and quotas. Pure.
    api/                   Requests to an API server: list, watch, patch, bind, evict, Events.
    follow/                Live copies of one kind of object each, in our own types.
    lives/                 When pods started and ended, and how, from their status. Pure.
    hived/                 HiveD's pod annotation and the YAML it is written in. Pure.
    read/                  Kubernetes objects translated into our own types. Pure.
    shaping/               Fields that the Shaping document sets on pods. Pure.
    values/                Fields, texts and quantities of JSON that others wrote. Pure.
"""
