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
	c := http.Client{Timeout: 5 * time.Second}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		rsp, err := c.Get("http://" + p.Admin() + "/readyz")
		if err == nil {
			_ = rsp.Body.Close()
			if rsp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Errorf("the host at %s is not ready: %v", p.Addr, err)
			return
		}
	}
}
