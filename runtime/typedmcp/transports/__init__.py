"""Ways to a peer: memory, stdio and, beside them, HTTP and WebSocket.  Each is a matched pair of one interface."""
