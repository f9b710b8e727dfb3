#!/usr/bin/env python3
"""Fetches PostgreSQL 18's source by apt from the mirror that this machine's apt uses, and prints
its folder.

It unpacks the tests alone (src/test) into target/pg18-source and leaves a folder that is already
there as it is. Nothing of it enters the tree. The mirror keeps the newest minor release only, so
the script takes the newest it finds.
"""

import os
import shutil
import subprocess
import sys
import tarfile

from peers import TARGET, say

FOLDER = os.path.join(TARGET, "pg18-source")
HELPER = "/usr/lib/apt/apt-helper"
NEWEST_MINOR = 20


def site():
    """The address of the mirror from which apt takes its main packages."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    sites = [name for name in found if not name.endswith("-security")]
    if not sites:
        sys.exit("apt knows no mirror: run apt-get update first")
    return sites[0]


def fetch():
    """The folder of the source, fetched where it is not there."""
    if os.path.isdir(os.path.join(FOLDER, "src/test")):
        return FOLDER
    if not os.path.exists(HELPER):
        sys.exit(f"there is no {HELPER}: PostgreSQL's source comes by apt")
    os.makedirs(TARGET, exist_ok=True)
    archive = FOLDER + ".tar.bz2"
    mirror = site()
    for minor in range(NEWEST_MINOR, -1, -1):
        name = f"postgresql-18_18.{minor}.orig.tar.bz2"
        command = [HELPER, "download-file", f"{mirror}/pool/main/p/postgresql-18/{name}", archive]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            say(f"fetched {name}")
            break
    else:
        sys.exit("apt's mirror has no source of PostgreSQL 18")
    part = FOLDER + ".part"
    shutil.rmtree(part, ignore_errors=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            inner = member.name.split("/", 1)[-1]
            if inner.startswith("src/test/"):
                member.name = inner
                packed.extract(member, part, filter="data")
    os.rename(part, FOLDER)
    os.remove(archive)
    return FOLDER


if __name__ == "__main__":
    print(fetch())
