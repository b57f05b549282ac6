"""What a method is: its record, its parameters, and how parameters that are left open are found."""
