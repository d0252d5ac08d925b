"""Every block of commands or code in README.md and docs/ runs as it stands."""
