package security_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// A host whose audit log cannot be written says so where operators look, and takes it
// back once it can.
func TestReadyTellsOfTheAuditLog(t *testing.T) {
	t.Parallel()
	dir := hosttest.WriteSwarm(t, "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
	cert := writeCertificate(t, dir, 1, time.Now().AddDate(1, 0, 0))
	h, stop := startTLS(t, dir, nil)
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ready := func() string {
		rsp, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+"/readyz")
		if rsp.StatusCode != http.StatusOK {
			t.Errorf("/readyz: %s %s", rsp.Status, body)
		}
		return body
	}
	log := filepath.Join(dir, ".skep", "audit.log")
	if err := errors.Join(os.Rename(log, log+".moved"), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	if rsp, _ := hosttest.Fetch(t, tlsClient(cert), h.URL()+"/whoami"); rsp.StatusCode != http.StatusUnauthorized {
		t.Fatal(rsp.Status)
	}
	hosttest.Eventually(t, "the audit log is in trouble", func() bool {
		return strings.Contains(ready(), "\nwarning: the audit log cannot be written: ")
	})
	if _, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+"/metrics"); !strings.Contains(body, "\nskep_audit_failures_total ") || strings.Contains(body, "\nskep_audit_failures_total 0\n") {
		t.Errorf("the metrics: %s", body)
	}
	if err := errors.Join(os.Remove(log), os.Rename(log+".moved", log)); err != nil {
		t.Fatal(err)
	}
	hosttest.Eventually(t, "the audit log is written again", func() bool { return ready() == "ready\n" })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A pipe in the place of the key holds up neither those who ask how the host is, nor
// its end.
func TestPipeInTheKeysPlace(t *testing.T) {
	t.Parallel()
	dir := hosttest.WriteSwarm(t, "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
	cert := writeCertificate(t, dir, 1, time.Now().AddDate(1, 0, 0))
	hangups := make(chan os.Signal)
	h, stop := startTLS(t, dir, hangups)
	key := filepath.Join(dir, "key.pem")
	if err := errors.Join(os.Remove(key), syscall.Mkfifo(key, 0o600)); err != nil {
		t.Fatal(err)
	}
	hangups <- syscall.SIGHUP
	hangups <- syscall.SIGHUP // taken once the first has been seen to
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if _, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+"/readyz"); !strings.Contains(body, "key.pem is no regular file") {
		t.Errorf("/readyz says %q", body)
	}
	if rsp, _ := hosttest.Fetch(t, tlsClient(cert), h.URL()+"/health"); rsp.StatusCode != http.StatusOK {
		t.Error(rsp.Status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A host that drains answers /readyz with 503 at once, and until its last turn ends.
func TestReadyzDuringDrain(t *testing.T) {
	t.Parallel()
	called, answer := make(chan struct{}), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(called)
		<-answer
	}))
	t.Cleanup(site.Close)
	dir := hosttest.WriteSwarm(t, fmt.Sprintf("allow = { http = [%q], http_private = true }\n", site.URL))
	h := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), filepath.Join(dir, ".skep"))
	cl := h.Client(t)
	if _, err := cl.PostAsync(t.Context(), client.Post{Body: hosttest.Script(hosttest.Step{"http.fetch", hosttest.Args{"method": "GET", "url": site.URL}})}); err != nil {
		t.Fatal(err)
	}
	<-called
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	done := make(chan error, 1)
	go func() { done <- h.Stop() }()
	hosttest.Eventually(t, "the host drains", func() bool {
		rsp, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+"/readyz")
		return rsp.StatusCode == http.StatusServiceUnavailable && body == "not ready: draining\n"
	})
	hosttest.Eventually(t, "no new callers are taken", func() bool {
		c, err := net.Dial("tcp", h.Addr())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	if rsp, body := hosttest.Fetch(t, plain, "http://"+h.AdminAddr()+"/readyz"); rsp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %s %s", rsp.Status, body)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
