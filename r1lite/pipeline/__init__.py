"""Runs R1's or any other pipeline: a graph of stages. A kill loses no finished work."""
