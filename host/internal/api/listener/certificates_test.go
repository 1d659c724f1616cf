package listener_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/listener"
)

func nextYear() time.Time { return time.Now().AddDate(1, 0, 0) }

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	a := newTestCA(t)
	cert, key := a.issue(2, nextYear())
	_, other := a.issue(3, nextYear())
	old, oldKey := a.issue(4, time.Now().Add(-time.Minute))
	young, youngKey := a.issueFrom(5, time.Now().Add(time.Hour), nextYear())
	for _, c := range []struct {
		name          string
		cert, key, ca []byte
		want          string
	}{
		{"no certificate", nil, key, nil, "cert.pem: no such file"},
		{"no key", cert, nil, nil, "key.pem: no such file"},
		{"another key", cert, other, nil, "are no certificate and its key"},
		{"expired", old, oldKey, nil, "expired on"},
		{"not yet", young, youngKey, nil, "is not valid before"},
		{"no authority", cert, key, []byte("words"), "holds no certificate in PEM form"},
		{"too large", cert, make([]byte, 1<<20+1), nil, "has more than 1048576 bytes"},
	} {
		d := newCertificateFixture(t)
		for path, text := range map[string][]byte{d.files.Cert: c.cert, d.files.Key: c.key, d.files.Cert + ".ca": c.ca} {
			if text != nil {
				d.write(path, text)
			}
		}
		if c.ca != nil {
			d.files.ClientCA = d.files.Cert + ".ca"
		}
		_, err := listener.LoadCertificates(listener.CertificateOptions{Files: d.files})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", c.name, err, c.want)
		}
		if check := d.files.Check(time.Now()); check == nil || check.Error() != err.Error() {
			t.Errorf("%s: Check = %v, Load = %v", c.name, check, err)
		}
	}
	if _, err := listener.LoadCertificates(listener.CertificateOptions{}); err == nil {
		t.Error("no files are loaded")
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	strict := open(t, listener.Limits{}, d.load(), hello)
	wide := open(t, listener.Limits{}, d.load(func(o *listener.CertificateOptions) { o.TLS12 = true }), hello)
	for _, c := range []struct {
		l        *listener.Listener
		settings *tls.Config
		want     uint16 // 0 when refused
	}{
		{strict, &tls.Config{}, tls.VersionTLS13},
		{strict, &tls.Config{MaxVersion: tls.VersionTLS12}, 0},
		{strict, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, 0},
		{wide, &tls.Config{}, tls.VersionTLS13},
		{wide, &tls.Config{MaxVersion: tls.VersionTLS12}, tls.VersionTLS12},
		{wide, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, 0},
		{wide, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}, 0},
		{wide, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, tls.VersionTLS12},
	} {
		c.settings.RootCAs = a.pool()
		got := uint16(0)
		conn, err := (&tls.Dialer{Config: c.settings}).DialContext(t.Context(), "tcp", c.l.Addr().String())
		if err == nil {
			got = conn.(*tls.Conn).ConnectionState().Version
			_ = conn.Close()
		}
		if got != c.want {
			t.Errorf("TLS from %x to %x: %x (%v), want %x", c.settings.MinVersion, c.settings.MaxVersion, got, err, c.want)
		}
	}
	for http2, want := range map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"} {
		c := caller(t, &tls.Config{RootCAs: a.pool()})
		c.Transport.(*http.Transport).ForceAttemptHTTP2 = http2
		if rsp, _, err := get(t.Context(), c, "https://"+strict.Addr().String()); err != nil || rsp.Proto != want {
			t.Errorf("%v, %v, want %s", rsp, err, want)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ours, foreign, d := newTestCA(t), newTestCA(t), newCertificateFixture(t)
	d.put(ours.issue(2, nextYear()))
	d.files.ClientCA = d.files.Cert + ".ca"
	d.write(d.files.ClientCA, ours.pem())
	asks := open(t, listener.Limits{}, d.load(), hello)
	demands := open(t, listener.Limits{}, d.load(func(o *listener.CertificateOptions) { o.RequireClient = true }), hello)
	for _, c := range []struct {
		name string
		l    *listener.Listener
		from *testCA
		ok   bool
	}{
		{"none, asked", asks, nil, true},
		{"none, demanded", demands, nil, false},
		{"ours, asked", asks, ours, true},
		{"ours, demanded", demands, ours, true},
		{"foreign, asked", asks, foreign, false},
		{"foreign, demanded", demands, foreign, false},
	} {
		settings := &tls.Config{RootCAs: ours.pool()}
		if c.from != nil {
			pair, err := tls.X509KeyPair(c.from.issue(9, nextYear()))
			if err != nil {
				t.Fatal(err)
			}
			// Whatever authorities the host names: this one is shown.
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		_, _, err := get(t.Context(), caller(t, settings), "https://"+c.l.Addr().String())
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// shown is the serial number of the certificate that a new connection is shown.
func shown(t *testing.T, a *testCA, l *listener.Listener) int64 {
	t.Helper()
	var d tls.Dialer
	d.Config = &tls.Config{RootCAs: a.pool()}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// run looks at the files until the test ends.
func run(t *testing.T, c *listener.Certificates) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

func TestReload(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load(func(o *listener.CertificateOptions) { o.ReloadEvery = 5 * time.Millisecond })
	l := open(t, listener.Limits{}, certs, hello)
	run(t, certs)
	if n := shown(t, a, l); n != 2 {
		t.Fatalf("certificate %d is shown", n)
	}
	d.put(a.issue(3, nextYear()))
	until(t, "the new one is shown", func() bool { return shown(t, a, l) == 3 })
	// Between the two files of a pair the watcher may have found a fault.
	faults := d.log.count("the old one stays")
	cert, key := a.issue(4, nextYear())
	for range 3 {
		d.write(d.files.Cert, cert)
		until(t, "what is broken is logged", func() bool { return d.log.count("the old one stays") == faults+1 && len(certs.Warnings()) == 1 })
	}
	if err := os.Remove(d.files.Key); err != nil {
		t.Fatal(err)
	}
	until(t, "another fault is logged", func() bool { return d.log.count("the old one stays") == faults+2 })
	if n := shown(t, a, l); n != 3 {
		t.Errorf("certificate %d is shown", n)
	}
	d.write(d.files.Key, key)
	until(t, "the pair is whole", func() bool { return shown(t, a, l) == 4 && len(certs.Warnings()) == 0 })
	d.put(a.issue(5, time.Now().Add(-time.Minute)))
	until(t, "an expired one is refused", func() bool { return d.log.count("expired on") == 1 })
	d.put(a.issueFrom(6, time.Now().Add(time.Hour), nextYear()))
	until(t, "one of tomorrow is refused", func() bool { return d.log.count("is not valid before") == 1 })
	if n := shown(t, a, l); n != 4 {
		t.Errorf("certificate %d is shown", n)
	}
}

// A pair that is being replaced is invalid for a moment, which is not logged.
func TestReloadWaitsForTheSecondFile(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load()
	cert, key := a.issue(3, nextYear())
	d.write(d.files.Cert, cert)
	certs.Look()
	d.write(d.files.Key, key)
	certs.Look()
	if d.log.count("the old one stays") != 0 || d.log.count("new certificate in use") != 1 {
		t.Errorf("the log: %s", d.log.buf.String())
	}
	d.write(d.files.Key, nil)
	for range 3 {
		certs.Reload(t.Context())
	}
	if d.log.count("the old one stays") != 1 {
		t.Errorf("the log: %s", d.log.buf.String())
	}
	d.write(d.files.Key, key)
	for range 2 {
		certs.Look()
	}
	if d.log.count("is whole again") != 1 || d.log.count("new certificate in use") != 1 {
		t.Errorf("mended as it was, the log: %s", d.log.buf.String())
	}
}

func TestRequestedReload(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load(func(o *listener.CertificateOptions) { o.ReloadEvery = time.Hour })
	l := open(t, listener.Limits{}, certs, hello)
	d.put(a.issue(3, nextYear()))
	certs.Reload(t.Context())
	if n := shown(t, a, l); n != 3 {
		t.Errorf("certificate %d is shown", n)
	}
	d.write(d.files.Key, nil)
	certs.Reload(t.Context())
	if n := d.log.count("the old one stays"); n != 1 {
		t.Errorf("what is broken is logged %d times", n)
	}
}

// Clients are verified against the current CAs, resumed sessions too.
func TestReloadOfTheAuthority(t *testing.T) {
	t.Parallel()
	ours, next, d := newTestCA(t), newTestCA(t), newCertificateFixture(t)
	d.put(ours.issue(2, nextYear()))
	d.files.ClientCA = d.files.Cert + ".ca"
	d.write(d.files.ClientCA, ours.pem())
	certs := d.load(func(o *listener.CertificateOptions) { o.RequireClient = true })
	l := open(t, listener.Limits{}, certs, hello)
	pair, err := tls.X509KeyPair(ours.issue(9, nextYear()))
	if err != nil {
		t.Fatal(err)
	}
	settings := &tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{pair}, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	c := caller(t, settings)
	if _, _, err := get(t.Context(), c, "https://"+l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	d.write(d.files.ClientCA, next.pem())
	certs.Reload(t.Context())
	c.CloseIdleConnections()
	if _, _, err := get(t.Context(), c, "https://"+l.Addr().String()); err == nil {
		t.Error("a session of an authority that has gone was resumed")
	}
}

func TestExpiryWarnings(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	end := time.Now().Add(90 * 24 * time.Hour)
	d.put(a.issue(2, end))
	var now atomic.Int64
	now.Store(time.Now().Unix())
	certs := d.load(func(o *listener.CertificateOptions) { o.Now = func() time.Time { return time.Unix(now.Load(), 0) } })
	expect := func(before time.Duration, said int, want string) {
		t.Helper()
		now.Store(end.Add(-before).Unix())
		certs.Warn()
		certs.Warn()
		w := strings.Join(certs.Warnings(), "; ")
		if n := d.log.count("level=WARN"); n != said || !strings.Contains(w, want) || want == "" && w != "" {
			t.Errorf("%v before the end: %d lines, %q; want %d, %q", before, n, w, said, want)
		}
	}
	expect(20*24*time.Hour, 0, "")
	expect(13*24*time.Hour, 1, "expires in 312h0m0s")
	expect(13*24*time.Hour-time.Hour, 1, "expires in 311h0m0s")
	expect(11*24*time.Hour, 2, "expires in")
	expect(-time.Hour, 3, "has expired")
	if got := certs.Expires(); got.Unix() != end.Unix() {
		t.Errorf("Expires = %v, want %v", got, end)
	}
}

// While certificates are replaced no request is lost, over connections that last
// and over new ones.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load(func(o *listener.CertificateOptions) { o.ReloadEvery = 2 * time.Millisecond })
	l := open(t, listener.Limits{}, certs, hello)
	run(t, certs)
	var all sync.WaitGroup
	var off atomic.Bool
	var asked, serials sync.Map
	for i := range 6 {
		all.Go(func() {
			c := caller(t, &tls.Config{RootCAs: a.pool()})
			for n := 0; !off.Load(); n++ {
				rsp, _, err := get(t.Context(), c, "https://"+l.Addr().String())
				if err != nil {
					t.Error("a request was lost:", err)
					return
				}
				serials.Store(rsp.TLS.PeerCertificates[0].SerialNumber.Int64(), true)
				asked.Store(i, n)
				if i%2 == 0 {
					c.CloseIdleConnections()
				}
			}
		})
	}
	for serial := int64(3); serial < 8; serial++ {
		d.put(a.issue(serial, nextYear()))
		until(t, "the new one is asked for", func() bool { _, ok := serials.Load(serial); return ok || t.Failed() })
	}
	off.Store(true)
	all.Wait()
	if _, ok := asked.Load(5); !ok {
		t.Error("a caller asked nothing")
	}
}

// What is wrong stays a warning while something else comes to be wrong.
func TestWarningStays(t *testing.T) {
	t.Parallel()
	a, d := newTestCA(t), newCertificateFixture(t)
	d.put(a.issue(2, nextYear()))
	certs := d.load()
	cert, key := a.issue(3, nextYear())
	d.write(d.files.Cert, cert)
	certs.Reload(t.Context())
	if err := os.Remove(d.files.Key); err != nil {
		t.Fatal(err)
	}
	certs.Look()
	if all := certs.Warnings(); len(all) != 1 || !strings.Contains(all[0], "are no certificate and its key") {
		t.Errorf("after the first look: %q", all)
	}
	certs.Look()
	if all := certs.Warnings(); len(all) != 1 || !strings.Contains(all[0], "no such file") {
		t.Errorf("after the second look: %q", all)
	}
	d.write(d.files.Key, key)
	certs.Look()
	if all := certs.Warnings(); len(all) != 0 {
		t.Errorf("once it is mended: %q", all)
	}
}
