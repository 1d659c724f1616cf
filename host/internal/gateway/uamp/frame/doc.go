// Package frame owns how envelopes and deltas of UAMP are cut out of the messages of a
// WebSocket: each has its length before it. It must not know what they are.
package frame
