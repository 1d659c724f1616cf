"""Control messages: handshake, authentication, acknowledgement, heartbeat and close.

The document asks for each (§2.3, §5.3) and gives none a name or a member. The names
are the ones that host/docs/iacp.md has. What is read here is read with tolerance:
a reply is known by its parent_message_id first, and by its name only without one.
"""

HANDSHAKE, HANDSHAKE_REPLY = "handshake", "handshake_ack"
AUTH, AUTH_REPLY = "auth", "auth_result"
REGISTER, REGISTER_REPLY = "agent_register", "agent_register_response"
DISCOVER, DISCOVER_REPLY = "agent_discover", "agent_discover_response"
ACK, HEARTBEAT, HEARTBEAT_REPLY, CLOSE = "ack", "heartbeat", "heartbeat_ack", "connection_close"
ERROR = "error_response"

# A message of these types is not acknowledged: it is an answer by itself, or owes none.
UNACKNOWLEDGED = {HANDSHAKE, HANDSHAKE_REPLY, AUTH, AUTH_REPLY, ACK, HEARTBEAT, HEARTBEAT_REPLY, CLOSE, ERROR, REGISTER, REGISTER_REPLY, DISCOVER_REPLY}

FEATURES = ["ack", "heartbeat", "connection_close"]


def handshake(agent_id):
    return {"versions": ["1.0"], "features": FEATURES, "agent": agent_id, "heartbeat_interval": 30}


def handshake_reply(agent_id, methods):
    return {"version": "1.0", "features": FEATURES, "agent": agent_id, "auth_required": bool(methods), "methods": methods}


def common_version(payload):
    """common_version is the version to speak, or None."""
    versions = payload.get("versions", payload.get("version", "1.0"))
    versions = versions if isinstance(versions, list) else [versions]
    return "1.0" if any(str(v).partition(".")[0] == "1" for v in versions) else None


def credential(options):
    """credential is the payload of an authentication, or None without one (§6.1)."""
    if options.token:
        return {"method": "token", "token": options.token}
    if options.api_key:
        return {"method": "api_key", "api_key": options.api_key}
    if options.cert:
        return {"method": "certificate"}
    return None


def secret_of(payload):
    return payload.get("token") or payload.get("api_key") or payload.get("credentials") or payload.get("key")


def registration(agent_id, name, address):
    return {
        "agent_info": {
            "agent_id": agent_id,
            "agent_name": name,
            "agent_type": "specialist",
            "capabilities": ["echo", "count"],
            "supported_tools": ["add"],
            "version": "1.0.0",
            "endpoints": {"primary": f"tcp://{address}", "health": f"tcp://{address}/health"},
        },
        "network_info": {
            "max_connections": 100,
            "preferred_protocols": ["iacp/1.0"],
            "authentication_methods": ["token", "certificate"],
        },
    }
