"""The certificates that the webhook serves with, and those it renews for all of Cellgate.

How certificates are issued and rotated is in `certs`; here are the Secrets, the leader that renews
them, and the check of client certificates. Imported by `webhook.app` only.

    provider             where certificates come from: a directory, or a shared Secret
    shared_certificates  the certificates in the shared Secret, followed by a watch
    renewer              the leader renews certificates, copies them and publishes the caBundle
    callers              with `--client-ca`, only clients with a certificate may request reviews
"""
