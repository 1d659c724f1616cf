// Package envelope owns the JSON of UAMP 1.0: envelopes, deltas, manifests and hub lists,
// what is wrong with one, and the bytes that a signature covers. It must not know keys,
// transports, or the runtime.
package envelope
