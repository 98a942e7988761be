"""The speculative loop: draft, verify in one pass, keep what the rule accepts.

Import levels; a module imports only from its right (a test enforces it):

    engine > admission, ending, telemetry
"""
