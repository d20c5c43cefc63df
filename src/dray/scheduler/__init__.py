"""Places pods with claims on nodes. Reaches the cluster only through `runtime`."""
