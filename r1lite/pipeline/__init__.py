"""The whole recipe of R1, or any other one: stages as a graph, run so that a kill loses nothing that was finished."""
