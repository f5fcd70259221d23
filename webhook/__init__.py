"""The API-server side: at which class a pod may run.

`wire` speaks AdmissionReview, `mutate` builds patches (both pure), `service` keeps the sequence
identify → decide → log → answer, `routes` speaks HTTP, `app` puts the parts together.
"""
