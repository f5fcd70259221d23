"""Tests of `kube`: Kubernetes objects in our own words."""
