"""Rules that API objects must obey, as lists of field errors. Never raises on bad objects, never does I/O."""
