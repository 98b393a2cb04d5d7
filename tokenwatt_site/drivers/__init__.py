"""What tells of accelerators, asked from two rooms: who they are, and what they draw."""
