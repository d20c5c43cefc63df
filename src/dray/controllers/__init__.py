"""Reconcilers: each takes a key, rereads everything and makes the world a little more right."""
