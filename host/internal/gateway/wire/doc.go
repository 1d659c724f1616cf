// Package wire owns what gateways hold foreign JSON against before a decoder reads it, and
// its canonical forms. It must not know a protocol.
package wire
