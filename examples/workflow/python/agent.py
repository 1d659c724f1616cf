"""Looks for what is dangerous in the text of a program."""

import json

import skep


class Security(skep.Agent):
    """Keeps nothing, so it is safe for several turns at once."""

    def turn(self, t):
        if t.message.type != "request":
            return
        code = json.loads(t.message.body)["parameters"]["code"]
        findings = [name + " of a text" for name in ("eval", "exec") if name + "(" in code]
        answer = {"status": "completed", "result": {"findings": findings, "by": "Python"}}
        t.send_response(t.message.sender.name, "Re: " + t.message.subject, json.dumps(answer))


if __name__ == "__main__":
    skep.serve(Security(), {"name": "security", "version": "1.0.0", "description": "Looks for what is dangerous."})
