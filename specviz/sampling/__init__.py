"""One sampler for drafting and verifying, the accept rule, and how many tokens a round drafts."""
