// Package uamp owns the gateway to UAMP 1.0: envelopes over HTTP/2, the streams with their
// answers, DID documents, signed manifests and the hub list, and the proof that an envelope
// is its sender's. It must not know how its keys are kept, nor how the runtime finds agents.
package uamp
