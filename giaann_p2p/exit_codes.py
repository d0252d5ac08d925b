"""The exit codes of all commands and daemons.

Each error class states the exit code of a process that it ends: `errors.GiaannError.exit_code`.
"""

DONE, FAILED, WRONG_USAGE, NOTHING, LEFT_BEHIND, INTERRUPTED = 0, 1, 2, 3, 4, 130

EXPLAINED = f"""Exit codes: {DONE} done; {FAILED} it failed, and standard error says why; \
{WRONG_USAGE} wrong usage; {NOTHING} nothing was found; {LEFT_BEHIND} a peer left, and could not \
hand over what it keeps; {INTERRUPTED} interrupted (Ctrl-C)."""
"""The paragraph about exit codes at the end of each help text."""
