"""Pictures of columns and of swarms, as files; matplotlib, which draws them, is optional."""
