// Package wire owns what gateways hold foreign JSON against before a decoder reads it, its
// canonical forms, and the pings of WebSockets. It must not know a protocol.
package wire
