"""How far two rankings of features agree."""
