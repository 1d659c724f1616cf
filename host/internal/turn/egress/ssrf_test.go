package egress_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

func oldTLS(s *httptest.Server) {
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
}

// Requests that must be refused before anything is dialled.
func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	for _, name := range []string{"api.test", "evil.test", "sub.api.test"} {
		w.resolve(name, apiAddr)
	}
	p := granted(t, "https://api.test/v1", "GET,POST http://api.test:8080", "https://*.wild.test", "https://*:444")
	p.AllowPrivate = true
	for url, tt := range map[string]struct {
		code   abi.Code
		reason string
		text   string
	}{
		"":                                    {abi.CodeInvalid, "request", "http or https"},
		"/v1":                                 {abi.CodeInvalid, "request", "http or https"},
		"//api.test/v1":                       {abi.CodeInvalid, "request", "http or https"},
		"file:///etc/passwd":                  {abi.CodeInvalid, "request", `not "file"`},
		"gopher://api.test/":                  {abi.CodeInvalid, "request", "http or https"},
		"ftp://api.test/":                     {abi.CodeInvalid, "request", "http or https"},
		"ws://api.test/v1":                    {abi.CodeInvalid, "request", "http or https"},
		"https:api.test":                      {abi.CodeInvalid, "request", "no host"},
		"https://":                            {abi.CodeInvalid, "request", "no host"},
		"https:///v1":                         {abi.CodeInvalid, "request", "no host"},
		"https://user:pass@api.test/v1":       {abi.CodeInvalid, "request", "credentials"},
		"https://api.test@evil.test/v1":       {abi.CodeInvalid, "request", "credentials"},
		"https://api.test:443@evil.test/v1":   {abi.CodeInvalid, "request", "credentials"},
		"https://api.test%2f@evil.test/v1":    {abi.CodeInvalid, "request", ""},
		"https://evil.test\\@api.test/v1":     {abi.CodeInvalid, "request", "character"},
		"https://api.test/v1\\..\\admin":      {abi.CodeInvalid, "request", "character"},
		"https://api.test/v1 HTTP/1.1\r\nX:y": {abi.CodeInvalid, "request", "character"},
		"https://api.test/v1?a b":             {abi.CodeInvalid, "request", "character"},
		"https://api.test/v1/%0d%0aX:y":       {abi.CodeInvalid, "request", "control character"},
		"https://api.test:0/v1":               {abi.CodeInvalid, "request", "port"},
		"https://api.test:65536/v1":           {abi.CodeInvalid, "request", "port"},
		"https://api.test:-1/v1":              {abi.CodeInvalid, "request", "cannot be read"},
		"https://" + strings.Repeat("abc.", 70) + "test/": {abi.CodeInvalid, "request", "longer than 253"},
		"https://api..test/v1":                            {abi.CodeInvalid, "request", "empty"},
		"https://.api.test/v1":                            {abi.CodeInvalid, "request", "empty"},
		"https://api.test../v1":                           {abi.CodeInvalid, "request", "empty"},
		"https://api.tést/v1":                             {abi.CodeInvalid, "request", "xn--"},
		"https://api。test/v1":                             {abi.CodeInvalid, "request", "xn--"},
		"https://１２７.0.0.1/":                              {abi.CodeInvalid, "request", "xn--"},
		"https://api.test%00.evil.test/":                  {abi.CodeInvalid, "request", ""},
		"https://api.test;evil.test/":                     {abi.CodeInvalid, "request", "character"},
		"http://2130706433/":                              {abi.CodeInvalid, "request", "four decimal"},
		"http://0x7f000001/":                              {abi.CodeInvalid, "request", "four decimal"},
		"http://0x7f.0.0.1/":                              {abi.CodeInvalid, "request", "four decimal"},
		"http://0177.0.0.1/":                              {abi.CodeInvalid, "request", "four decimal"},
		"http://127.1/":                                   {abi.CodeInvalid, "request", "four decimal"},
		"http://127.0.0.0x1/":                             {abi.CodeInvalid, "request", "four decimal"},
		"http://127.0.0.1.2/":                             {abi.CodeInvalid, "request", "four decimal"},
		"http://256.0.0.1/":                               {abi.CodeInvalid, "request", "four decimal"},
		"http://api.0x/":                                  {abi.CodeInvalid, "request", "four decimal"},
		"http://[fe80::1%25eth0]/":                        {abi.CodeInvalid, "request", "zone"},
		"http://[::1/":                                    {abi.CodeInvalid, "request", "cannot be read"},
		"http://[127.0.0.1]/":                             {abi.CodeInvalid, "request", ""},
		"http://::1/":                                     {abi.CodeInvalid, "request", ""},
		"https://api.test/" + strings.Repeat("a", 9000):   {abi.CodeInvalid, "request", "longer"},
		"https://api.test/v1/..;/admin":                   {abi.CodeInvalid, "request", "dot segment"},
		"https://api.test/v1/..%2fadmin":                  {abi.CodeInvalid, "request", "dot segment"},
		"https://api.test/v1/..%5cadmin":                  {abi.CodeInvalid, "request", "dot segment"},
		"https://api.test/v1/%252e%252e/admin":            {abi.CodeInvalid, "request", "dot segment"},
		"https://api.test/v1/%25252525252525252e":         {abi.CodeInvalid, "request", "too many"},

		"https://api.test/" + strings.Repeat("a", 900): {abi.CodeDenied, "grant", "aaa…"},
		"https://api.test/":                            {abi.CodeDenied, "grant", `it takes "GET https://api.test/" added to allow.http`},
		"https://api.test/v10":                         {abi.CodeDenied, "grant", ""},
		"https://api.test/V1":                          {abi.CodeDenied, "grant", ""},
		"https://api.test//v1":                         {abi.CodeDenied, "grant", ""},
		"https://api.test/v1/../admin":                 {abi.CodeDenied, "grant", "/admin"},
		"https://api.test/v1/%2e%2e/admin":             {abi.CodeDenied, "grant", "/admin"},
		"https://api.test/v1/%2E./admin":               {abi.CodeDenied, "grant", "/admin"},
		"https://api.test/v1/..":                       {abi.CodeDenied, "grant", ""},
		"https://api.test/v1%2fx":                      {abi.CodeDenied, "grant", ""},
		"http://api.test/v1":                           {abi.CodeDenied, "grant", `"GET http://api.test/v1" added`},
		"https://api.test:8443/v1":                     {abi.CodeDenied, "grant", `"GET https://api.test:8443/v1" added`},
		"https://sub.api.test/v1":                      {abi.CodeDenied, "grant", ""},
		"https://evil.test/?https://api.test":          {abi.CodeDenied, "grant", ""},
		"https://api.test.evil.test/v1":                {abi.CodeDenied, "grant", ""},
		"https://evil.test#@api.test/v1":               {abi.CodeDenied, "grant", "evil.test"},
		"https://wild.test/":                           {abi.CodeDenied, "grant", ""},
		"https://notwild.test/":                        {abi.CodeDenied, "grant", ""},
		"https://93.184.216.34:444/":                   {abi.CodeDenied, "grant", ""},
		"https://[2606:4700::1]:444/":                  {abi.CodeDenied, "grant", `"GET https://[2606:4700::1]:444/" added`},
		"https://localhost:444/":                       {abi.CodeDenied, "grant", ""},
		"https://localhost.:444/":                      {abi.CodeDenied, "grant", ""},
		"http://127.0.0.1/":                            {abi.CodeDenied, "grant", ""},
		"http://[::ffff:127.0.0.1]/":                   {abi.CodeDenied, "grant", "http://127.0.0.1/"},
		"http://169.254.169.254/latest/":               {abi.CodeDenied, "grant", ""},
	} {
		_, err := w.client().Fetch(t.Context(), p, "", get(url))
		if err == nil {
			t.Errorf("%q is fetched", url)
			continue
		}
		t.Run(url, func(t *testing.T) { refused(t, err, tt.code, tt.reason, tt.text) })
	}
	if len(w.dialled) > 0 || len(w.lookups) > 0 {
		t.Errorf("dialled %v, looked up %v", w.dialled, w.lookups)
	}
}

// An error never quotes the user info or the query of a URL.
func TestErrorsHideCredentials(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	for _, url := range []string{"https://u:hunter2@api.test/", "https://api.test/?token=hunter2", "https://u:hunter2@api.test:x/", "hunter2\x00"} {
		if _, err := w.client().Fetch(t.Context(), egress.Policy{}, "", get(url)); err == nil || strings.Contains(err.Message, "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", echo)
	p := granted(t, "GET,POST http://api.test/a", "PUT http://api.test/b")
	for _, tt := range []struct {
		method, path string
		code         abi.Code
	}{
		{"GET", "/a", 0},
		{"POST", "/a", 0},
		{"PUT", "/b", 0},
		{"PUT", "/a", abi.CodeDenied},
		{"GET", "/b", abi.CodeDenied},
		{"HEAD", "/a", abi.CodeDenied},
		{"", "/a", abi.CodeInvalid},
		{"get", "/a", abi.CodeInvalid},
		{"CONNECT", "/a", abi.CodeInvalid},
		{"TRACE", "/a", abi.CodeInvalid},
		{"GET /x HTTP/1.1\r\nX: y", "/a", abi.CodeInvalid},
	} {
		_, err := w.client().Fetch(t.Context(), p, "", abi.FetchRequest{Method: tt.method, URL: "http://api.test" + tt.path})
		if got := codeOf(err); got != tt.code {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.path, got, tt.code)
		}
	}
}

func codeOf(err *abi.Error) abi.Code {
	if err == nil {
		return abi.CodeOK
	}
	return err.Code
}

// A granted name that resolves to an internal address is refused, however the address is
// written and whatever the policy allows.
func TestNamesOfTheInside(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
		"169.254.169.254", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "192.88.99.1",
		"224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "3fff::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:7f00:1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:2::1", "5f00::1", "100::1",
	} {
		w := newFakeNet(t)
		w.resolve("api.test", addr)
		p := granted(t, "http://api.test", "http://127.0.0.1", "http://[::1]", "http://169.254.169.254")
		p.AllowPrivate = true
		_, err := w.client().Fetch(t.Context(), p, "", get("http://api.test/"))
		t.Run(addr, func(t *testing.T) {
			refused(t, err, abi.CodeDenied, "address", "api.test ")
			if len(w.dialled) > 0 {
				t.Errorf("dialled %v", w.dialled)
			}
		})
	}
}

// If an answer mixes public and private addresses, only the public ones are dialled.
func TestMixedAnswer(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", "10.0.0.1 "+otherAddr+" ::ffff:127.0.0.1 fd00:ec2::254 "+apiAddr+" 64:ff9b::5db8:d823")
	_, err := w.client().Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
	refused(t, err, abi.CodeUnavailable, "connect", "cannot be reached")
	var got []string
	for _, a := range w.dialled {
		got = append(got, a.String())
	}
	if want := []string{otherAddr + ":80", apiAddr + ":80", "[64:ff9b::5db8:d823]:80"}; !slices.Equal(got, want) {
		t.Errorf("dialled %v, want %v", got, want)
	}
}

// A name that changes its answer between two lookups gains nothing: the checked address is
// dialled, and each fetch and each hop checks anew.
func TestRebinding(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr, "127.0.0.1", apiAddr, "169.254.169.254")
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/again" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "outside")
	})
	c, p := w.client(), granted(t, "http://api.test", "http://127.0.0.1")
	got, err := c.Fetch(t.Context(), p, "", get("http://api.test/"))
	answered(t, got, err, 200, "outside")
	_, err = c.Fetch(t.Context(), p, "", get("http://api.test/"))
	refused(t, err, abi.CodeDenied, "address", "loopback")
	_, err = c.Fetch(t.Context(), p, "", get("http://api.test/again"))
	refused(t, err, abi.CodeDenied, "address", "link-local")
	if w.lookups["api.test"] != 4 {
		t.Errorf("%d lookups, want one a hop", w.lookups["api.test"])
	}
	for _, a := range w.dialled {
		if a.Addr().String() != apiAddr {
			t.Errorf("dialled %s", a)
		}
	}
}

// With the real dialer, an address of this machine is reached only by its own name and
// with permission.
func TestPrivateByName(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	w := newFakeNet(t)
	w.resolve("rebound.test", "127.0.0.1")
	w.resolve("localhost", apiAddr)
	c := w.client(func(o *egress.Options) { o.Dial = nil })
	for _, tt := range []struct {
		name, grant, host string
		private           bool
		code              abi.Code
	}{
		{"literal", "http://127.0.0.1:" + port, "127.0.0.1", true, 0},
		{"mapped literal", "http://127.0.0.1:" + port, "[::ffff:127.0.0.1]", true, 0},
		{"mapped grant", "http://[::ffff:7f00:1]:" + port, "127.0.0.1", true, 0},
		{"localhost", "http://localhost:" + port, "localhost", true, 0},
		{"no leave", "http://127.0.0.1:" + port, "127.0.0.1", false, abi.CodeDenied},
		{"localhost without leave", "http://localhost:" + port, "localhost", false, abi.CodeDenied},
		{"another literal", "http://127.0.0.1:" + port, "127.0.0.2", true, abi.CodeDenied},
		{"another name", "http://rebound.test:" + port, "rebound.test", true, abi.CodeDenied},
		{"everyone", "http://*:" + port, "127.0.0.1", true, abi.CodeDenied},
		{"this link", "http://169.254.169.254:" + port, "169.254.169.254", true, abi.CodeDenied},
		{"this link, IPv6", "http://[fe80::1]:" + port, "[fe80::1]", true, abi.CodeDenied},
		{"this link, mapped", "http://169.254.169.254:" + port, "[::ffff:a9fe:a9fe]", true, abi.CodeDenied},
		{"unspecified", "http://0.0.0.0:" + port, "0.0.0.0", true, abi.CodeDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := granted(t, tt.grant)
			p.AllowPrivate = tt.private
			_, err := c.Fetch(t.Context(), p, "", get("http://"+tt.host+":"+port+"/"))
			if got := codeOf(err); got != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
}

// Proxies of the environment do not apply to guests.
func TestNoProxy(t *testing.T) {
	proxied := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxied.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxied.URL)
	}
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", echo)
	got, err := w.client().Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
	answered(t, got, err, 200, "GET api.test / ")
}
