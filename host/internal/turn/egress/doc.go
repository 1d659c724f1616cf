// Package egress owns requests that leave the host for a guest: grants, address checks,
// limits, and the secrets that the host adds. It must not know turns, journals or the way
// a guest is run.
//
// A fetch needs a grant for its URL and a permitted address. The URL is normalized first;
// the normalized URL is matched and sent. The host name is resolved here, each address is
// checked, and only checked addresses are dialled. Each hop of a redirect passes the same
// checks.
//
// Two fetches of guests share nothing: each hop opens a connection and closes it. So no
// tenant sees a connection, cookie, TLS session or cached credential of another tenant.
// The price is one handshake per hop, next to the two durable writes of a fetch. A client
// for requests of the host itself may keep connections ([KeepAlive]); each was opened to a
// checked address.
package egress
