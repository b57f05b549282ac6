"""Text for people: numbers, counts, printable names, waterfalls."""
