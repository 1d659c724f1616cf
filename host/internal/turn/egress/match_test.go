package egress

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"

	"skep/abi"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		grant, url string
		want       bool
	}{
		{"https://a.test", "https://a.test/anything?x", true},
		{"https://a.test", "https://a.test:443", true},
		{"https://a.test", "https://A.TEST./", true},
		{"https://a.test", "https://b.a.test/", false},
		{"https://a.test/v1", "https://a.test/v1", true},
		{"https://a.test/v1", "https://a.test/v1/", true},
		{"https://a.test/v1", "https://a.test/v1?x", true},
		{"https://a.test/v1", "https://a.test/%76%31/x", true},
		{"https://a.test/v1", "https://a.test/x/../v1/y", true},
		{"https://a.test/v1", "https://a.test/v1//x", true},
		{"https://a.test/v1", "https://a.test/v1;x", false},
		{"https://a.test/v1", "https://a.test/v1.", false},
		{"https://a.test/v1/", "https://a.test/v1", false},
		{"https://a.test/v1/", "https://a.test/v1/x", true},
		{"https://a.test/g/a%2Fb", "https://a.test/g/a%2fb/c", true},
		{"https://a.test/g/a%2Fb", "https://a.test/g/a/b/c", false},
		{"https://*.a.test", "https://b.a.test/", true},
		{"https://*.a.test", "https://c.b.a.test/", true},
		{"https://*.a.test", "https://a.test/", false},
		{"https://*.a.test", "https://ba.test/", false},
		{"https://*", "https://b.test/", true},
		{"https://*", "http://b.test/", false},
		{"https://*", "https://b.test:8443/", false},
		{"https://*", "https://93.184.216.34/", false},
		{"https://*", "https://localhost/", false},
		{"https://[::1]", "https://[0::1]/", true},
	} {
		g, err := ParseGrant(tt.grant)
		if err != nil {
			t.Fatal(err)
		}
		to, err := parseTarget(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.covers("GET", to); got != tt.want {
			t.Errorf("%s covers %s = %v, want %v", tt.grant, tt.url, got, tt.want)
		}
	}
	if to, _ := parseTarget("https://a.test"); (Grant{}).covers("GET", to) {
		t.Error("the zero grant covers something")
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]addressClass{
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "10.0.0.0": "private", "10.255.255.255": "private",
		"9.255.255.255": public, "11.0.0.0": public, "100.63.255.255": public, "100.64.0.0": "carrier-grade NAT",
		"100.127.255.255": "carrier-grade NAT", "100.128.0.0": public, "127.0.0.1": loopback, "127.255.255.255": loopback,
		"169.253.255.255": public, "169.254.169.254": "link-local", "169.255.0.0": public, "172.15.255.255": public,
		"172.16.0.0": "private", "172.31.255.255": "private", "172.32.0.0": public, "192.0.0.170": "protocol",
		"192.0.1.0": public, "192.0.2.255": "documentation", "192.88.99.1": "6to4", "192.167.255.255": public,
		"192.168.0.0": "private", "192.169.0.0": public, "198.17.255.255": public, "198.18.0.0": "benchmark",
		"198.19.255.255": "benchmark", "198.20.0.0": public, "198.51.100.1": "documentation", "203.0.113.1": "documentation",
		"203.0.114.0": public, "223.255.255.255": public, "224.0.0.1": "multicast", "239.255.255.255": "multicast",
		"240.0.0.0": "reserved", "255.255.255.254": "reserved", "255.255.255.255": "broadcast",
		"8.8.8.8": public, "1.1.1.1": public,

		"::": "unspecified", "::1": loopback, "::2": "reserved", "::7f00:1": "reserved", "::ffff:127.0.0.1": loopback,
		"::ffff:8.8.8.8": public, "::ffff:0:808:808": "reserved", "64:ff9b::7f00:1": loopback, "64:ff9b::808:808": public,
		"64:ff9b::a9fe:a9fe": "link-local", "64:ff9b:1::808:808": "NAT64", "100::1": "reserved", "fc00::": "private",
		"fd00:ec2::254": "private", "fdff::1": "private", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"2606:4700::1%eth0": "link-local", "febf::1": "link-local", "fec0::1": "private", "ff02::1": "multicast", "2001:db8::1": "documentation",
		"2001::1": "protocol", "2001:1ff::1": "protocol", "2001:200::1": public, "2002:808:808::": "6to4",
		"3fff:fff::1": "documentation", "3fff:1000::1": public, "4000::1": "reserved", "5f00::1": "reserved",
		"2606:4700::1111": public, "2a00:1450::1": public, "1fff::1": "reserved",
	} {
		if got := classify(netip.MustParseAddr(addr)); got != want {
			t.Errorf("classify(%s) = %q, want %q", addr, got, want)
		}
	}
}

// A decompressed body is bounded while it is read, not only afterwards.
func TestDecoderIsBounded(t *testing.T) {
	t.Parallel()
	var coded bytes.Buffer
	z := gzip.NewWriter(&coded)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil || z.Close() != nil {
		t.Fatal("cannot compress")
	}
	h := &hop{client: New(Options{MaxResponseBody: 64 << 10}), scrub: NewScrubber()}
	raw, err := h.readBody(t.Context(), &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(&coded)})
	if err == nil || err.Code != abi.CodeLimit {
		t.Errorf("got %d bytes, %v", len(raw), err)
	}
}

// If one secret is a prefix of another, the longer one is replaced.
func TestLongestSecretFirst(t *testing.T) {
	t.Parallel()
	var secrets []Secret
	for _, value := range []string{"planted", "planted-long", "plant"} {
		s, err := NewSecret(value, value, "X-Key", "http://a.test")
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, s)
	}
	got := NewScrubber(secrets...).Text("a planted-long planted plants")
	if want := "a [secret planted-long] [secret planted] [secret plant]s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The check right before the socket connects does not rely on earlier checks.
func TestRecheck(t *testing.T) {
	t.Parallel()
	to, err := parseTarget("http://a.test")
	if err != nil {
		t.Fatal(err)
	}
	h := &hop{target: to}
	checked := netip.MustParseAddrPort("93.184.216.34:80")
	for address, ok := range map[string]bool{
		"93.184.216.34:80": true, "93.184.216.34:81": false, "93.184.216.35:80": false, "127.0.0.1:80": false,
		"[::ffff:93.184.216.34]:80": false, "a.test:80": false,
	} {
		if err := h.checkDialled(checked, address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	inside := netip.MustParseAddrPort("127.0.0.1:80")
	if h.checkDialled(inside, inside.String()) == nil {
		t.Error("the socket may connect to the inside")
	}
}

// A connection is only used for the host it was made for.
func TestConnIsForItsHost(t *testing.T) {
	t.Parallel()
	to, err := parseTarget("http://a.test")
	if err != nil {
		t.Fatal(err)
	}
	l := newClientConn(nil, to)
	for asked, ok := range map[string]bool{"a.test:80": true, "b.test:80": false, "a.test:81": false} {
		if _, err := l.transport(1).DialContext(t.Context(), "tcp", asked); (err == nil) != ok {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// FuzzGrant checks that a URL covered by a grant leads nowhere but to the granted place,
// as package net/http and lenient servers read it.
func FuzzGrant(f *testing.F) {
	for _, seed := range [][2]string{
		{"https://a.test/v1", "https://a.test/v1/../admin"},
		{"https://a.test/v1", "https://a.test/v1/%2e%2e/admin"},
		{"https://a.test/v1", "https://a.test/v1/%252e%252e%2fadmin"},
		{"https://a.test/v1", "https://a.test//v1/..;/x"},
		{"https://a.test/v1", "https://a.test\\@evil.test/v1"},
		{"https://a.test/v1/", "https://A.TEST.:443/v1/\u00e4?q#f"},
		{"GET https://*.a.test", "https://b.a.test./%5c..%5c"},
		{"https://*", "https://0x7f.1/"},
		{"http://127.0.0.1:8080", "http://[::ffff:7f00:1]:8080//x"},
		{"http://[::1]", "http://[0:0:0:0::1]?"},
		{"https://a.test/a%2Fb", "https://a.test/%61%2fb/*"},
		{"https://a.test", "https://u@a.test/%zz"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, grant, raw string) {
		g, err := ParseGrant(grant)
		if err != nil {
			return
		}
		if again, err := ParseGrant(g.String()); err != nil || again.String() != g.String() {
			t.Fatalf("grant %q is %q, which is not read back: %v", grant, g, err)
		}
		to, err := parseTarget(raw)
		if err != nil {
			return
		}
		checkSent(t, raw, to)
		if g.covers("GET", to) {
			checkGranted(t, g, to)
		}
	})
}

// checkSent checks that the sent URL is the matched one, and that the raw URL leads to the
// same host.
func checkSent(t *testing.T, raw string, to target) {
	t.Helper()
	if again, err := parseTarget(to.String()); err != nil || again != to {
		t.Fatalf("%q: the spelling %q is not the last: %q, %v", raw, to, again, err)
	}
	req, err := http.NewRequest(http.MethodGet, to.String(), nil)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	if req.URL.RequestURI() != to.uri() || req.Host != to.authority() || req.URL.Scheme != to.scheme || req.URL.User != nil {
		t.Fatalf("%q: sent %q to %q, checked %q", raw, req.URL.RequestURI(), req.Host, to)
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	}
	if host != to.host {
		t.Fatalf("%q: host %q, checked %q", raw, host, to.host)
	}
}

func checkGranted(t *testing.T, g Grant, to target) {
	t.Helper()
	if to.scheme != g.target.scheme || to.port != g.target.port {
		t.Fatalf("%s covers %s", g, to)
	}
	if g.hosts == exact && to.host != g.target.host || g.hosts == subdomains && !strings.HasSuffix(to.host, "."+g.target.host) {
		t.Fatalf("%s covers %s", g, to)
	}
	if g.hosts != exact && to.addr.IsValid() {
		t.Fatalf("%s covers the address %s", g, to)
	}
	prefix, err := url.PathUnescape(g.target.path)
	if err != nil {
		t.Fatal(err)
	}
	seen := to.path
	for range 3 {
		lenient := path.Clean(strings.ReplaceAll(seen, `\`, "/"))
		granted := path.Clean(strings.ReplaceAll(prefix, `\`, "/"))
		if granted != "/" && lenient != granted && !strings.HasPrefix(lenient, granted+"/") && !strings.Contains(g.target.path, "%") {
			t.Fatalf("%s covers %s, which a lenient server reads as %s", g, to, lenient)
		}
		if seen, err = url.PathUnescape(seen); err != nil {
			return
		}
	}
}
