"""The simulated API server: verbs and watches over the stored objects, and the HTTP side.

Only `server` knows HTTP. Used by `simulation.cluster`.

server         HTTP: paths, parameters, bodies, headers, errors
verbs          create, update, delete and bind, without HTTP
watch          watch streams
token_reviews  TokenReview and SubjectAccessReview
"""
