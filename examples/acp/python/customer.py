"""Orders some pieces of one thing from an agent over ACP.

The packages acp and order are made by `skep acp compile`; nothing else is needed.
"""

import datetime
import os
import sys
import urllib.error
import urllib.request
import uuid

from acp import messages as acp
from order import messages as order


def request(body: str) -> acp.Message:
    """The REQUEST with a body for the agent `stock`."""
    return acp.Message(
        header=acp.Header(
            version="1.0",
            sender=acp.AgentID("customer"),
            receiver=acp.AgentID("stock"),
            type_=acp.MessageType.REQUEST,
            id=acp.MessageID(str(uuid.uuid4())),
            timestamp=acp.Timestamp(datetime.datetime.now(datetime.timezone.utc).isoformat()),
            content_type="application/json",
        ),
        body=body,
    )


def post(message: acp.Message) -> acp.Message:
    """Sends a message and reads the one that answers it."""
    call = urllib.request.Request(
        os.environ["SKEP_URL"] + "/acp/v1/messages",
        data=acp.encode_message(message).encode("utf-8"),
        headers={"Authorization": "Bearer " + os.environ["SKEP_TOKEN"], "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(call, timeout=60) as reply:
            status, text = reply.status, reply.read()
    except urllib.error.HTTPError as refused:
        status, text = refused.code, refused.read()
    except OSError as away:
        sys.exit(f"no answer from {call.full_url}: {away}")
    try:
        return acp.decode_message(text)
    except ValueError:  # refused before it was read as a message, as for a wrong token
        sys.exit(f"{status}: {text.decode('utf-8', 'replace').strip()}")


def main() -> None:
    if len(sys.argv) != 3 or not sys.argv[2].isdecimal():
        sys.exit("usage: customer.py ITEM COUNT, as in: customer.py screws 3")
    if missing := [name for name in ("SKEP_URL", "SKEP_TOKEN") if not os.environ.get(name)]:
        sys.exit("not set: " + ", ".join(missing))
    item, count = sys.argv[1], int(sys.argv[2])
    question = request(order.encode_order(order.Order(item=item, count=count)))
    answer = post(question)
    if answer.header.type_ != acp.MessageType.RESPONSE or answer.header.reply_to != question.header.id:
        sys.exit(f"{answer.header.type_}: {answer.body}")
    receipt = order.decode_receipt(answer.body)
    print(f"{receipt.count} {receipt.item}: {receipt.cents / 100:.2f}")


if __name__ == "__main__":
    try:
        main()
    except ValueError as wrong:  # an order, an address or a receipt that is none
        sys.exit(str(wrong))
