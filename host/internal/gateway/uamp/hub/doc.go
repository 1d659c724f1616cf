// Package hub owns reading what other hosts list of their agents (U-102): the list, and the
// manifests and DID documents that show what in it is true. It must not know who is trusted, nor
// where a request may go.
package hub
