"""Draft strategies, one a file; `specviz.drafting.registry` finds each by itself, so a draft takes no other edit."""
