"""The Go programs of Kubernetes: the module that makes them buildable, and the go command.

gomodule  the Go module, as text
gobuild   runs the go command
"""
