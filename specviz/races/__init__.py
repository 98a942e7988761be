"""Races: several lanes on one prompt, from what a person asked for to a stream of events.

Import levels; a module imports only from its right (a test enforces it):

    request > lanes > prompts, race_limits, racing
"""
