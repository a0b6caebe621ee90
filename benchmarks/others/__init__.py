"""Side by side with what people would use instead: LangGraph's PostgresStore, and a table with pgvector written by hand.

`make bench-others` (or `make bench-others-quick`) runs it: on one server, with the same vectors, their calls taking turns.
Each system is called as its users call it from Python; LangGraph runs in a process and an environment of its own.
"""
