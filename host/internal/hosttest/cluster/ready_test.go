package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"skep/host/internal/hosttest"
)

// waitReady waits until a host works on tasks.
func waitReady(t *testing.T, p *hosttest.Process) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ready, err := isReady(p)
		if ready {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the host at %s is not ready: %v", p.Addr, err)
			return
		}
	}
}

// isReady reports whether a host works on tasks.
func isReady(p *hosttest.Process) (bool, error) {
	c := http.Client{Timeout: 5 * time.Second}
	rsp, err := c.Get("http://" + p.Admin() + "/readyz")
	if err != nil {
		return false, err
	}
	return rsp.StatusCode == http.StatusOK, rsp.Body.Close()
}
