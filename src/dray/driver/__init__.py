"""The SDK for device drivers: the public API for driver authors."""
