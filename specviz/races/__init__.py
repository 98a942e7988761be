"""Races: several lanes on one prompt, from what a person asked for to a stream of events."""
