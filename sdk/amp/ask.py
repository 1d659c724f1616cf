"""Asks an agent of a mesh: ask.py AGENT TEXT. MESH_URL is the mesh's invoke, MESH_TOKEN its token."""

import json
import os
import sys

import amp_mesh

if len(sys.argv) != 3 or "MESH_URL" not in os.environ:
    sys.exit(__doc__)
client = amp_mesh.Client(os.environ["MESH_URL"], "agent-1", os.environ.get("MESH_TOKEN"))
try:
    print(json.dumps(client.invoke("mail.message", {"body": sys.argv[2]}, agent=sys.argv[1])))
except (amp_mesh.Error, OSError) as err:
    sys.exit(f"ask.py: {err}")
