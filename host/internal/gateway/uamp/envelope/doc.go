// Package envelope owns the messages of UAMP 1.0: envelopes and deltas, what is wrong with
// one, and the bytes that its signature covers. It must not know keys, transports, or the
// runtime.
package envelope
