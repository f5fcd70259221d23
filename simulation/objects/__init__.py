"""Storage, patches, selectors and the rules of single kinds.

Nothing here knows HTTP or webhooks. Used by the other packages of `simulation`.

store      all objects in memory, with one revision counter and a bounded history
resources  the kinds that are served, and their paths
selectors  label and field selectors
patch      JSON patch, JSON merge patch, strategic merge patch
pods       defaults, validation, binding and deletion of pods
identity   users by token, and impersonation
status     errors with their Status object and HTTP code
fields     helpers for objects as plain JSON
"""
