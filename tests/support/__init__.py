"""What tests share: the server that they run on, databases, people, and ways to watch locks."""
