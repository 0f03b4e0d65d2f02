"""Files, archives, tables, the hub, caches, locks and the HTTP server."""
