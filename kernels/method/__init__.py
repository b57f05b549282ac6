"""Methods: their record, their parameters, tuning of open parameters, and jackknife errors."""
