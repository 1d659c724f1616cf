// Package wire owns what gateways hold foreign JSON against before a decoder reads it, its
// canonical forms, how many large messages are read at once, and the reading and pings of
// WebSockets. It must not know a protocol.
package wire
