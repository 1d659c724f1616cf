// Package egress owns requests that leave the host for a guest: grants,
// address checks, limits, and the secrets the host adds. It must not know
// turns, journals or how a guest is run.
//
// A fetch is allowed by its grant and by its address. The URL is brought to
// one spelling first; that spelling is matched and sent. The name is resolved
// here, each address is checked, and only a checked one is dialled. Every hop
// of a redirect goes through all of it again.
//
// Nothing of a guest is shared between two fetches: each hop has a connection of
// its own, which ends with it. So no tenant sees another's connection, cookie,
// TLS session or cached credential. The price is a handshake a hop, beside the
// two durable writes that a fetch costs anyway. A client for what the host itself
// sends may keep connections ([Keep]): each was opened to a checked address.
package egress
