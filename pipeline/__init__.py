"""From model files and Parquet to a published run: everything between the kernels and Prefect."""
