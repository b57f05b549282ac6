"""List columns of parts: reasons and largest attributions."""
