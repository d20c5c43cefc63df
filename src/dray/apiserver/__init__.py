"""The Kubernetes API over the store. Wires rules from `api` and `validation`; holds none of its own."""
