"""An agent in a mesh: it offers translation, and hands questions to the agent boss of the mesh.

MESH_URL is the mesh's invoke, MESH_TOKEN its token, AGENT_ADDRESS where the mesh reaches this
agent, AGENT_TOKEN what the mesh shows here, MESH_KEY a shared key for signatures or empty, RENEW the
seconds between heartbeats or empty. It ends with its standard input.
"""

import json
import os
import sys

import amp_mesh

WORDS = {"good": "gut", "morning": "Morgen"}

key = os.environ.get("MESH_KEY", "").encode()
agent = amp_mesh.Agent("agent-7", "Translator", token=os.environ["AGENT_TOKEN"], key=key)
client = amp_mesh.Client(os.environ["MESH_URL"], "agent-7", os.environ.get("MESH_TOKEN"), key)


@agent.capability("translation", description="Translates from English to German.")
async def translate(parameters):
    return {"text": " ".join(WORDS.get(word, word) for word in parameters["text"].split())}


@agent.capability("question-answering", description="Hands the question to another agent.")
def answer(parameters):
    return client.invoke("mail.message", {"body": parameters["question"]}, agent="boss")


def show(message):
    print(json.dumps({"called_back": message["payload"]}), flush=True)


agent.on_answer = show
host, _, port = os.environ["AGENT_ADDRESS"].rpartition(":")
server = agent.serve(host, int(port))
every = float(os.environ.get("RENEW") or 0) or None
with amp_mesh.Membership(client, agent, f"http://{host}:{server.server_port}/invoke", every=every):
    print("registered", flush=True)
    for line in sys.stdin:  # a method of Client, its arguments and the named ones, as JSON
        method, args, named = json.loads(line)
        try:
            print(json.dumps(getattr(client, method)(*args, **named)), flush=True)
        except amp_mesh.Error as err:
            print(json.dumps({"code": err.code, "reason": err.reason, "details": err.details}), flush=True)
server.shutdown()
server.server_close()
