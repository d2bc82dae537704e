"""Units of measurement: their names, and how products and powers of them are read."""
