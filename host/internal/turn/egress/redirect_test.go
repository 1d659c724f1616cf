package egress_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// redirecting answers /STATUS?to=URL with that redirect, everything else with the request
// it got.
func redirecting(w http.ResponseWriter, r *http.Request) {
	var status int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(status)
		return
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s%s body=%s type=%s auth=%s cookie=%s x=%s key=%s", r.Method, r.Host, r.RequestURI, body,
		r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("X-Api-Key"), r.Header.Get("Idempotency-Key"))
}

func redirectNet(t *testing.T) *fakeNet {
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.resolve("b.test", otherAddr)
	w.resolve("inside.test", "10.0.0.1")
	w.serve(apiAddr+":80", redirecting)
	w.serve(otherAddr+":80", redirecting)
	return w
}

func TestRedirectMethods(t *testing.T) {
	t.Parallel()
	w := redirectNet(t)
	p := granted(t, "http://a.test", "http://b.test", "POST,PUT http://b.test/in")
	for _, tt := range []struct {
		method string
		status int
		to     string
		want   string
	}{
		{"GET", 301, "/x", "GET a.test/x body= type=text/plain auth=guest cookie=c=1 x= key=k"},
		{"GET", 308, "x?y#z", "GET a.test/x?y body= type=text/plain auth=guest cookie=c=1 x= key=k"},
		{"POST", 301, "/x", "GET a.test/x body= type= auth=guest cookie=c=1 x= key=k"},
		{"POST", 302, "/x", "GET a.test/x body= type= auth=guest cookie=c=1 x= key=k"},
		{"POST", 303, "/x", "GET a.test/x body= type= auth=guest cookie=c=1 x= key=k"},
		{"PUT", 303, "/x", "GET a.test/x body= type= auth=guest cookie=c=1 x= key=k"},
		{"PUT", 302, "/x", "PUT a.test/x body=data type=text/plain auth=guest cookie=c=1 x= key=k"},
		{"POST", 307, "/x", "POST a.test/x body=data type=text/plain auth=guest cookie=c=1 x= key=k"},
		{"POST", 308, "//a.test:80/x", "POST a.test/x body=data type=text/plain auth=guest cookie=c=1 x= key=k"},
		{"POST", 303, "http://b.test/x", "GET b.test/x body= type= auth= cookie= x= key=k"},
		{"POST", 307, "http://b.test/in", "POST b.test/in body=data type=text/plain auth= cookie= x= key=k"},
		{"DELETE", 307, "http://b.test/x", "DELETE b.test/x body= type=text/plain auth= cookie= x= key=k"},
		{"GET", 304, "/x", ""},
		{"GET", 300, "/x", ""},
	} {
		t.Run(fmt.Sprint(tt.method, tt.status, tt.to), func(t *testing.T) {
			t.Parallel()
			req := abi.FetchRequest{
				Method: tt.method, URL: fmt.Sprintf("http://a.test/%d?to=%s", tt.status, strings.NewReplacer("#", "%23", "?", "%3F").Replace(tt.to)),
				Headers: map[string]string{"authorization": "guest", "cookie": "c=1", "content-type": "text/plain"},
			}
			if tt.method == "POST" || tt.method == "PUT" {
				req.Body = "data"
			}
			got, err := w.client().Fetch(t.Context(), p, "k", req)
			if err != nil || got.Body != tt.want {
				t.Errorf("got %q, %v, want %q", got.Body, err, tt.want)
			}
		})
	}
}

func TestRedirectsRefused(t *testing.T) {
	t.Parallel()
	w := redirectNet(t)
	p := granted(t, "GET,POST http://a.test", "http://b.test/open", "http://inside.test", "http://10.0.0.1")
	for name, tt := range map[string]struct {
		method, to string
		reason     string
		text       string
	}{
		"file":            {"GET", "file:///etc/passwd", "redirect", `not "file"`},
		"scheme":          {"GET", "gopher://a.test/", "redirect", "http or https"},
		"data":            {"GET", "data:text/plain,x", "redirect", "http or https"},
		"javascript":      {"GET", "javascript:alert(1)", "redirect", "http or https"},
		"credentials":     {"GET", "http://u:p@a.test/", "redirect", "credentials"},
		"credentials @":   {"GET", "http://a.test@evil.test/", "redirect", "credentials"},
		"backslash":       {"GET", "/%5Cevil.test", "redirect", "character"},
		"decimal":         {"GET", "http://2130706433/", "redirect", "four decimal"},
		"octal":           {"GET", "http://0177.0.0.1/", "redirect", "four decimal"},
		"host":            {"GET", "http://evil.test/", "redirect", `"GET http://evil.test/" added to allow.http`},
		"network path":    {"GET", "//evil.test/", "redirect", "evil.test"},
		"scheme change":   {"GET", "https://a.test/", "redirect", `"GET https://a.test/" added`},
		"port":            {"GET", "http://a.test:8080/", "redirect", `"GET http://a.test:8080/" added`},
		"path":            {"GET", "http://b.test/closed", "redirect", "GET http://b.test/closed is not granted"},
		"path by dots":    {"GET", "http://b.test/open/../closed", "redirect", "http://b.test/closed"},
		"path by escapes": {"GET", "http://b.test/open/%252e%252e/closed", "redirect", "http://b.test/closed"},
		"metadata":        {"GET", "http://169.254.169.254/latest", "redirect", "not granted"},
		"mapped":          {"GET", "http://[::ffff:169.254.169.254]/latest", "redirect", "not granted"},
		"private literal": {"GET", "http://10.0.0.1/", "address", "10.0.0.1 is not a public address (private)"},
		"private name":    {"GET", "http://inside.test/", "address", "inside.test resolves to"},
		"loopback":        {"GET", "http://127.0.0.1/", "redirect", "not granted"},
		"body elsewhere":  {"POST", "http://b.test/open", "redirect", `allow = { http = ["POST http://b.test"] }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := w.client().Fetch(t.Context(), p, "", abi.FetchRequest{
				Method: tt.method, URL: "http://a.test/307?to=" + tt.to, Body: map[string]string{"POST": "data"}[tt.method],
			})
			refused(t, err, abi.CodeDenied, tt.reason, tt.text)
		})
	}
	t.Cleanup(func() {
		for _, a := range w.dialled {
			if a.Addr().String() != apiAddr {
				t.Errorf("dialled %s", a)
			}
		}
	})
}

// A method that is not granted is not reached through a redirect either.
func TestRedirectToUngrantedMethod(t *testing.T) {
	t.Parallel()
	w := redirectNet(t)
	_, err := w.client().Fetch(t.Context(), granted(t, "POST http://a.test"), "", abi.FetchRequest{Method: "POST", URL: "http://a.test/303?to=/x"})
	refused(t, err, abi.CodeDenied, "redirect", "GET http://a.test/x is not granted")
}

func TestEndlessRedirects(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	var asked int
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, fmt.Sprint("/", asked), http.StatusFound)
	})
	p := granted(t, "http://a.test")
	_, err := w.client().Fetch(t.Context(), p, "", get("http://a.test/"))
	refused(t, err, abi.CodeLimit, "redirect", "more than 5 redirects, the last to http://a.test/6")
	if asked != 6 {
		t.Errorf("asked %d times, want 6", asked)
	}
	_, err = w.client(func(o *egress.Options) { o.MaxRedirects = -1 }).Fetch(t.Context(), p, "", get("http://a.test/"))
	refused(t, err, abi.CodeLimit, "redirect", "more than 0 redirects")
}

// The bodies of redirects are not read.
func TestBodyOfARedirect(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			_, _ = io.WriteString(w, "end")
			return
		}
		w.Header().Set("Location", "/end")
		w.WriteHeader(http.StatusFound)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
			w.(http.Flusher).Flush()
		}
	})
	got, err := w.client().Fetch(t.Context(), granted(t, "http://a.test"), "", get("http://a.test/"))
	answered(t, got, err, 200, "end")
}

// A redirect from http to https is another origin.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("example.com", apiAddr)
	w.serve(apiAddr+":80", redirecting)
	w.serveTLS(apiAddr+":443", redirecting, func(*httptest.Server) {})
	req := get("http://example.com/301?to=https://example.com/x")
	req.Headers = map[string]string{"Authorization": "guest"}
	got, err := w.client().Fetch(t.Context(), granted(t, "http://example.com", "https://example.com"), "", req)
	answered(t, got, err, 200, "GET example.com/x body= type= auth= cookie= x= key=")
}
