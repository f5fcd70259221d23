"""The admission of writes: defaults, priority, webhooks and checks, in the order of a real server.

May change or refuse an object, but stores nothing. Used by `simulation.api`.

admission  the order of the steps
checks     the rules for bodies of create and update requests
priority   the Priority admission plugin
review     AdmissionReview objects
webhooks   matches stored webhook configurations to a request, and calls the webhooks
"""
