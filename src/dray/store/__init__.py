"""A revisioned key-value log with watches. Knows bytes and keys, nothing of the API."""
