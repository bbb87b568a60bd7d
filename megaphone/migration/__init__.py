"""How a migration is cut into steps and paced."""
