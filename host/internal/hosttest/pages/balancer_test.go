package pages_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/hosttest"
)

// fakeHost stands for a host behind the balancer: a listener for callers, and one with /readyz.
type fakeHost struct {
	public, admin *httptest.Server
	notReady      atomic.Bool
}

// startFakeHost starts a host that answers with its number n.
func startFakeHost(t *testing.T, n int) *fakeHost {
	t.Helper()
	b := &fakeHost{}
	b.public = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "skep-%d by %s", n, r.Proto)
	}))
	b.public.EnableHTTP2 = true
	b.public.StartTLS()
	b.admin = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || b.notReady.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(b.public.Close)
	t.Cleanup(b.admin.Close)
	return b
}

// startBalancer runs haproxy with the file of the deployment before hosts of this machine, and returns its address.
func startBalancer(t *testing.T, hosts []*fakeHost) (address string) {
	t.Helper()
	path := os.Getenv("PATH") + string(filepath.ListSeparator) + "/usr/sbin" // Debian installs it there
	hasProgram(t, "haproxy", path)
	dir := t.TempDir()
	pair := hosts[0].public.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	text := hosttest.ReadText(t, filepath.Join(deployDir, "haproxy.cfg"))
	changes := []string{"/usr/local/etc/haproxy", dir, "bind :8000", "bind " + address}
	for i, h := range hosts {
		_, admin, _ := net.SplitHostPort(h.admin.Listener.Addr().String())
		name := fmt.Sprint("skep-", i+1)
		changes = append(changes, name+":8000 verifyhost "+name, h.public.Listener.Addr().String()+" verifyhost example.com port "+admin)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	for name, data := range map[string][]byte{
		"haproxy.cfg": []byte(strings.NewReplacer(changes...).Replace(text)), "tls.crt": certificate, "ca.crt": certificate,
		"tls.crt.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), "env", "PATH="+path, "haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return address
}

// TestDeployBalancer: the balancer of the deployment sends no request to a host whose /readyz answers 503, also on a connection
// that the caller keeps, and sends it requests again once it is ready. No request fails when a host is gone.
func TestDeployBalancer(t *testing.T) {
	t.Parallel()
	hosts := []*fakeHost{startFakeHost(t, 1), startFakeHost(t, 2), startFakeHost(t, 3)}
	address := startBalancer(t, hosts)
	for _, h2 := range []bool{false, true} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!h2)
		protocols.SetHTTP2(h2)
		kept := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: protocols}}
		defer kept.CloseIdleConnections()
		ask := func() string {
			resp, err := kept.Get("https://" + address + "/")
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				return fmt.Sprint(resp.Status, err)
			}
			return string(body)
		}
		until := func(what string, done func(host string) bool) {
			t.Helper()
			last := ""
			for deadline := time.Now().Add(30 * time.Second); !done(last); time.Sleep(5 * time.Millisecond) {
				if last = ask(); time.Now().After(deadline) {
					t.Fatalf("%s: %s", what, last)
				}
			}
		}
		isFirst := func(host string) bool { return strings.HasPrefix(host, "skep-1 by HTTP/2") }
		until("the first host", isFirst)
		hosts[0].notReady.Store(true)
		passed := 0
		until("a host that is not ready", func(host string) bool {
			if passed++; isFirst(host) || host == "" {
				passed = 0
			}
			return passed == 30
		})
		for range 30 {
			if host := ask(); !strings.HasPrefix(host, "skep-2 ") && !strings.HasPrefix(host, "skep-3 ") {
				t.Error("while the first host is not ready:", host)
			}
		}
		hosts[0].notReady.Store(false)
		until("the first host, which is ready again", isFirst)
	}
	hosts[1].public.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for range 30 {
		resp, err := client.Get("https://" + address + "/")
		if err != nil {
			t.Fatal("a host is gone:", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Error("a host is gone:", resp.Status)
		}
	}
}
