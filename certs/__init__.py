"""Certificates: a certificate authority (CA), and the serving and client certificates it signs.

Private keys are generated here and never shipped. Nothing here calls Kubernetes: the webhook keeps
its certificates in a Secret by itself (`webhook.certificates`). May import `policy` only; the
extender, the webhook and the CLI import it.

The one idea: a CA signs only after every caller has had time to trust it. `rotation` is a pure
function of the certificates that exist and of the time, so any replica may run it, repeatedly.

issuance              makes a CA, and certificates that it signs
rotation              decides when each certificate is renewed, and replaces CAs with an overlap
store                 certificates in a directory: made when missing, renewed before they expire
serving_certificates  certificates of a running server, reloaded without a restart
tls                   TLS contexts for servers
clients               the identity of a caller, from its client certificate
"""
