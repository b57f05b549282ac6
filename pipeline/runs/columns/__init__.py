"""Lists inside a part: reasons and largest attributions."""
