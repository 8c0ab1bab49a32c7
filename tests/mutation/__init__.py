"""Mutation runner: changes one threshold, factor or comparison at a time; some test must fail."""
