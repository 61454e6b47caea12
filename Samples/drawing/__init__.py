"""Draws the sample pictures with arithmetic and writes them as JPEG and PNG, without any library."""
