// Package seal owns the signatures of UAMP: the keys that sign and verify, the detached
// JSON Web Signatures of envelopes, signed manifests, and capability tokens. It must not
// know where keys are found, nor what an envelope means.
package seal
