"""Tables that have a log of their own, Delta Lake's and Iceberg's: which of their files count, and parts of a run as files of one."""
