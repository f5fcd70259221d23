"""Elastic Jobs: suspended Jobs are resumed with the first number of members that fits.

The one idea: the Job itself has all state. The leader simulates a pod of each size, as
`/v1/simulate` does, and resumes the Job with one write. From then on the pods are ordinary ones:
admitted, charged and planned like all others. Imported by the wiring and the app only.

elastic_starts  The loop of the leader: which Job is resumed next, and with which size.
"""
