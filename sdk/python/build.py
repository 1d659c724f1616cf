"""Makes the program of an exec: source from an agent in one file.

    python3 build.py AGENT.py PROGRAM

The program begins with the path of the Python that makes it, and has the agent and
the SDK inside; what the SDK imports stays with that Python, and so belongs into
readable. The same files make the same bytes.
"""

import os
import pathlib
import sys
import zipfile


def build(agent, program):
    """Writes the program. It is replaced in one step."""
    files = {"__main__.py": pathlib.Path(agent)}
    package = pathlib.Path(__file__).resolve().parent / "skep"
    files.update({"skep/" + file.name: file for file in sorted(package.glob("*.py"))})
    fresh = pathlib.Path(str(program) + ".new")
    with open(fresh, "wb") as out:
        out.write(b"#!" + sys.executable.encode() + b"\n")
        with zipfile.ZipFile(out, "w") as inside:
            for name, file in sorted(files.items()):
                inside.writestr(zipfile.ZipInfo(name), file.read_bytes())
    fresh.chmod(0o755)
    os.replace(fresh, program)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        build(*sys.argv[1:])
    except OSError as err:
        sys.exit("%s: %s" % (err.filename, err.strerror))
