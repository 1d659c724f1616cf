"""What schemathesis does before a request is sent."""

import re

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """The host's feed has no end without a limit, and its first event comes at once."""
    if case.path != "/skep/v1/pulse" or case.method not in ("GET", "HEAD"):
        return
    query = dict(case.query or {})
    limit = str(query.get("limit") or "1")
    if re.fullmatch("[+]?[0-9]+", limit) and 0 < int(limit) <= 2**53:
        query["limit"] = 1
        case.query = query
