"""
Allocates from every construct, or from those named: program.py [CONSTRUCT...]; "forks" does only that. Leaves truth.PID.json,
one for each process and interpreter, and skipped.json: what was not tried, and why. For CPython 3.8 and later.
"""
import atexit
import json
import sys

import classes
import special
import truth
from truth import P, cu, note

N_ROUNDS = 2  # the second time stacks are not new


def main(names):
    atexit.register(truth.save)
    if names == ["forks"]:
        truth.construct = "forks"
        special.forks()
        return
    truth.start()
    for construct in classes.CONSTRUCTS * N_ROUNDS + special.CONSTRUCTS:
        if not names or construct.__name__ in names:
            truth.construct = construct.__name__
            construct()
    with open("skipped.json", "w") as out:
        json.dump(special.skipped, out)
    truth.construct = "atexit"
    atexit.register(lambda: cu(P(), note()))


if __name__ == "__main__":
    main(sys.argv[1:])
