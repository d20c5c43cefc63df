"""Which devices a claim gets: Kubernetes' answer, found without its exponential search. No I/O in here."""
