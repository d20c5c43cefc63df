"""Generated protocol buffers of the kubelet plugin APIs. Nothing written by hand but the .proto files."""
