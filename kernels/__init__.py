"""Arrays in, arrays out: the algorithms, and nothing that knows a file, a column name or a cluster."""
