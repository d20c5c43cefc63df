"""CEL in the Kubernetes dialect: text in, program out. Knows devices as values, not the API objects around them."""
