"""The one speculative loop: draft, verify in one pass, keep what the rule keeps."""
