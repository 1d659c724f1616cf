package main

import "testing"

// TestLastKeyCounts: a request has the key that it was given last, and the one that it was made
// from keeps its own.
func TestLastKeyCounts(t *testing.T) {
	t.Parallel()
	first := message("http://127.0.0.1:1", trivialBody)
	second := first.as("another-key")
	for want, r := range map[string]httpRequest{"Bearer " + benchKey: first, "Bearer another-key": second} {
		req, err := r.build(t.Context())
		if err != nil || req.Header.Get("Authorization") != want {
			t.Errorf("%v, %v, want %s", req.Header, err, want)
		}
	}
}
