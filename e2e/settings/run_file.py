"""Runs a sample as it was printed.   usage: run_file.py FILE"""
import sys

exec(open(sys.argv[1]).read())
