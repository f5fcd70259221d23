"""The simulated API server: verbs and watches over the stored objects, and the HTTP side.

server         HTTP: paths, parameters, bodies, headers, errors
verbs          what each verb does with an understood request
watch          watch streams with their deadline
token_reviews  TokenReview and SubjectAccessReview
"""
