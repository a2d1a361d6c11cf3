"""The protocol without IO: envelopes, events, connections, checks.  Imports nothing but msgspec and the wire."""
