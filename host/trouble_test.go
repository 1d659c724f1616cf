package host_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A host whose audit log cannot be written says so where operators look, and takes it
// back once it can.
func TestReadyTellsOfTheAuditLog(t *testing.T) {
	dir := writeSwarm(t, "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
	cert := writeCertificate(t, dir, 1, time.Now().AddDate(1, 0, 0))
	h, stop := secureHost(t, dir, nil)
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ready := func() string {
		rsp, body := fetch(t, plain, "http://"+h.AdminAddr()+"/readyz")
		if rsp.StatusCode != http.StatusOK {
			t.Errorf("/readyz: %s %s", rsp.Status, body)
		}
		return body
	}
	log := filepath.Join(dir, ".skep", "audit.log")
	if err := errors.Join(os.Rename(log, log+".moved"), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	if rsp, _ := fetch(t, secureClient(cert), h.URL()+"/whoami"); rsp.StatusCode != http.StatusUnauthorized {
		t.Fatal(rsp.Status)
	}
	eventuallyTrue(t, "the audit log is in trouble", func() bool {
		return strings.Contains(ready(), "\nwarning: the audit log cannot be written: ")
	})
	if _, body := fetch(t, plain, "http://"+h.AdminAddr()+"/metrics"); !strings.Contains(body, "\nskep_audit_failures_total ") || strings.Contains(body, "\nskep_audit_failures_total 0\n") {
		t.Errorf("the metrics: %s", body)
	}
	if err := errors.Join(os.Remove(log), os.Rename(log+".moved", log)); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "the audit log is written again", func() bool { return ready() == "ready\n" })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A pipe in the place of the key holds up neither those who ask how the host is, nor
// its end.
func TestPipeInTheKeysPlace(t *testing.T) {
	dir := writeSwarm(t, "[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
	cert := writeCertificate(t, dir, 1, time.Now().AddDate(1, 0, 0))
	hangups := make(chan os.Signal)
	h, stop := secureHost(t, dir, hangups)
	key := filepath.Join(dir, "key.pem")
	if err := errors.Join(os.Remove(key), syscall.Mkfifo(key, 0o600)); err != nil {
		t.Fatal(err)
	}
	hangups <- syscall.SIGHUP
	hangups <- syscall.SIGHUP // taken once the first has been seen to
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if _, body := fetch(t, plain, "http://"+h.AdminAddr()+"/readyz"); !strings.Contains(body, "key.pem is no regular file") {
		t.Errorf("/readyz says %q", body)
	}
	if rsp, _ := fetch(t, secureClient(cert), h.URL()+"/health"); rsp.StatusCode != http.StatusOK {
		t.Error(rsp.Status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
