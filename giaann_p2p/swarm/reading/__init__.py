"""Reads: hedged requests for rows, votes on them, disputes, and routing of prompts."""
