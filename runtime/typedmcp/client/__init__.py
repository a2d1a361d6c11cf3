"""The client: correlation, negotiation of the revision, results as values.  Imports the core only."""
