package egress_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

const (
	apiAddr   = "93.184.216.34"
	otherAddr = "93.184.216.35"
)

// echo answers with what arrived.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.RequestURI, body)
}

func TestFetch(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", echo)
	p := granted(t, "http://api.test")
	for name, tt := range map[string]struct {
		req  abi.FetchRequest
		want string
	}{
		"get":             {get("http://api.test"), "GET api.test / "},
		"one spelling":    {get("HTTP://API.Test.:080/a/./b/../c%7e%2Fd?x=ä#frag"), "GET api.test /a/c~%2Fd?x=%C3%A4 "},
		"text":            {abi.FetchRequest{Method: "POST", URL: "http://api.test/p", Body: "grüß"}, "POST api.test /p grüß"},
		"bytes":           {abi.FetchRequest{Method: "PUT", URL: "http://api.test/p", BodyBase64: []byte("raw")}, "PUT api.test /p raw"},
		"delete":          {abi.FetchRequest{Method: "DELETE", URL: "http://api.test/p"}, "DELETE api.test /p "},
		"two slashes":     {get("http://api.test//evil.test/x"), "GET api.test //evil.test/x "},
		"a path in utf-8": {get("http://api.test/ä"), "GET api.test /%C3%A4 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := w.client().Fetch(t.Context(), p, "", tt.req)
			answered(t, got, err, 200, tt.want)
		})
	}
}

// A response with any status is a result.
func TestStatusIsData(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	})
	for _, status := range []int{204, 300, 302, 304, 401, 404, 429, 500, 503} {
		got, err := w.client().Fetch(t.Context(), granted(t, "http://api.test"), "", get(fmt.Sprint("http://api.test/", status)))
		answered(t, got, err, status, "")
	}
}

func TestAnswerForms(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Many"] = []string{"a", "b"}
		w.Header()["Set-Cookie"] = []string{"a=1, 2", "b=3"}
		w.Header().Set("X-Latin", "caf\xe9")
		w.Header().Set("Date", "now")
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte("\x89PNG\xff"))
	})
	got, err := w.client().Fetch(t.Context(), granted(t, "http://api.test"), "", get("http://api.test/"))
	if err != nil {
		t.Fatal(err)
	}
	want := abi.FetchResponse{
		Status: 200, BodyBase64: []byte("\x89PNG\xff"),
		Headers: map[string]string{
			"x-many": "a, b", "set-cookie": "a=1, 2\nb=3", "x-latin": "caf\uFFFD", "date": "now",
			"content-type": "image/png", "content-length": "5",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "99999999999")
		w.Header().Set("Content-Encoding", "gzip")
	})
	got, err := w.client().Fetch(t.Context(), granted(t, "http://api.test"), "", abi.FetchRequest{Method: "HEAD", URL: "http://api.test/"})
	answered(t, got, err, 200, "")
	if got.Headers["content-length"] != "99999999999" {
		t.Errorf("headers %v", got.Headers)
	}
}

// A server sees no trace of Go, of a proxy or of another call.
func TestHeadersOfTheHost(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	var got http.Header
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
	})
	c, p := w.client(), granted(t, "http://api.test")
	for range 2 {
		if _, err := c.Fetch(t.Context(), p, "k1", get("http://api.test/")); err != nil {
			t.Fatal(err)
		}
	}
	want := http.Header{"User-Agent": {"skep"}, "Accept-Encoding": {"identity"}, "Idempotency-Key": {"k1"}, "Connection": {"close"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Values("Idempotency-Key"))
	})
	with, without := granted(t, "http://api.test"), granted(t, "http://api.test")
	without.Grants[0].NoKey = true
	own := get("http://api.test/")
	own.Headers = map[string]string{"idempotency-key": "guest"}

	got, err := w.client().Fetch(t.Context(), with, "host", get("http://api.test/"))
	answered(t, got, err, 200, "[host]")
	got, err = w.client().Fetch(t.Context(), without, "host", get("http://api.test/"))
	answered(t, got, err, 200, "[]")
	got, err = w.client().Fetch(t.Context(), without, "host", own)
	answered(t, got, err, 200, "[guest]")
	_, err = w.client().Fetch(t.Context(), with, "host", own)
	refused(t, err, abi.CodeInvalid, "header", "Idempotency-Key is set by the host")
}

// The zero options make a client that works.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(s.Close)
	p := granted(t, s.URL)
	p.AllowPrivate = true
	got, err := egress.New(egress.Options{}).Fetch(t.Context(), p, "", get(s.URL))
	answered(t, got, err, 200, "GET "+strings.TrimPrefix(s.URL, "http://")+" / ")
}

// Concurrent fetches of one client do not mix.
func TestHammer(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("api.test", apiAddr)
	w.serve(apiAddr+":80", echo)
	c, p := w.client(), granted(t, "http://api.test")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				got, err := c.Fetch(t.Context(), p, "", get(fmt.Sprintf("http://api.test/%d/%d", i, n)))
				if want := fmt.Sprintf("GET api.test /%d/%d ", i, n); err != nil || got.Body != want {
					t.Errorf("got %q, %v, want %q", got.Body, err, want)
				}
			}
		})
	}
	wg.Wait()
}
