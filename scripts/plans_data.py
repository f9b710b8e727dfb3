"""The data sets of scripts/plans.py: generated once to files, then loaded into both servers.

A data set is a module with `tables(scale)`, which gives the name and the rows of each table. Rows
depend on the scale alone, so both servers load the same bytes. The files are in the text format of
COPY, in a folder named by the module's source: a changed generator writes a new folder.
"""

import hashlib
import shutil
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path

# Bytes of a message of COPY.
CHUNK = 1 << 20


class Zipf:
    """Draws 0 to count - 1; the k-th number is drawn with a weight of 1 / (k + 1)^slope."""

    def __init__(self, random, count, slope=1.0):
        self.random = random
        sums = list(accumulate(1 / (k + 1) ** slope for k in range(count)))
        self.sums = [part / sums[-1] for part in sums]

    def __call__(self):
        return min(bisect_left(self.sums, self.random()), len(self.sums) - 1)


def chance(random, shares):
    """Draws one of the keys of `shares`, by their shares of 1."""
    point = random()
    for key, share in shares.items():
        point -= share
        if point < 0:
            return key
    return key


def uuid_of(number):
    """A version-4 UUID that depends on the number alone."""
    digits = hashlib.md5(str(number).encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def line(row):
    return "\t".join("\\N" if value is None else str(value) for value in row)


def files(module, folder, scale):
    """The folder that holds a file for each table; generates what is not there."""
    source = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()[:12]
    whole = folder / f"{module.__name__}-{scale:g}-{source}"
    if whole.exists():
        return whole
    part = folder / f"{whole.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, rows in module.tables(scale):
        with open(part / f"{name}.tsv", "w", encoding="utf-8") as out:
            out.writelines(line(row) + "\n" for row in rows)
    part.rename(whole)
    return whole


def chunks(path):
    """The bytes of a file, whole lines at a time."""
    with open(path, "rb") as data:
        while lines := data.readlines(CHUNK):
            yield b"".join(lines)
