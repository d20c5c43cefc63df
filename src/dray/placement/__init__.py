"""A forkable picture of the cluster, and the question "where could these pods go?". No I/O."""
