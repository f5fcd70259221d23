"""What a write passes before it is stored: defaults, priority, webhooks, checks, in the real order.

admission  the order of the steps
checks     what a body must look like, and what a client cannot decide
priority   the Priority admission plugin
review     AdmissionReview objects
webhooks   which stored webhook configurations match a request, and the calls
"""
