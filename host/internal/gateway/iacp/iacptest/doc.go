// Package iacptest owns another party's program that speaks IaCP: it was written from the
// protocol's document, with our names of control messages and framing and types of its own,
// and serves tests of the gateway. It must not know anything of skep.
package iacptest
