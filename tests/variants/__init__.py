"""Every kind of model that is read, small ones, beside what its own library says of the same rows."""
