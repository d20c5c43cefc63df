"""The node agent: prepares claims through drivers and runs pods. Knows drivers only over gRPC."""
