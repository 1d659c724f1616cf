package egress_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

const bodyCap = 64 << 10

func small(o *egress.Options) {
	o.MaxRequestBody, o.MaxResponseBody, o.MaxResponseHeader = bodyCap, bodyCap, 8<<10
}

func gzipped(w io.Writer, n int) {
	z := gzip.NewWriter(w)
	defer func() { _ = z.Close() }()
	zeros := make([]byte, 1<<16)
	for ; n > 0; n -= len(zeros) {
		if _, err := z.Write(zeros[:min(n, len(zeros))]); err != nil {
			return
		}
	}
}

func TestBodyCap(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		coded := strings.HasPrefix(r.URL.Path, "/gzip")
		if coded {
			w.Header().Set("Content-Encoding", "GZIP")
		}
		switch r.URL.Path {
		case "/fits":
			_, _ = io.WriteString(w, strings.Repeat("x", bodyCap))
		case "/over":
			_, _ = io.WriteString(w, strings.Repeat("x", bodyCap+1))
		case "/announced":
			w.Header().Set("Content-Length", "9999999999")
		case "/endless":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<14))
			}
		case "/gzip-fits":
			gzipped(w, bodyCap)
		case "/gzip-bomb":
			gzipped(w, 1<<26)
		case "/gzip-empty":
			var empty bytes.Buffer
			gzipped(&empty, 0)
			for r.Context().Err() == nil {
				_, _ = w.Write(bytes.Repeat(empty.Bytes(), 100))
			}
		case "/gzip-corrupt":
			_, _ = io.WriteString(w, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff")
		case "/gzip-none":
			_, _ = io.WriteString(w, "plain text, not gzip")
		}
	})
	for path, tt := range map[string]struct {
		code   abi.Code
		reason string
	}{
		"/fits": {}, "/gzip-fits": {},
		"/over":         {abi.CodeLimit, "response_bytes"},
		"/announced":    {abi.CodeLimit, "response_bytes"},
		"/endless":      {abi.CodeLimit, "response_bytes"},
		"/gzip-bomb":    {abi.CodeLimit, "response_bytes"},
		"/gzip-empty":   {abi.CodeLimit, "response_bytes"},
		"/gzip-corrupt": {abi.CodeUnavailable, "encoding"},
		"/gzip-none":    {abi.CodeUnavailable, "encoding"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got, err := w.client(small).Fetch(t.Context(), granted(t, "http://a.test"), "", get("http://a.test"+path))
			switch {
			case tt.code == abi.CodeLimit:
				refused(t, err, tt.code, tt.reason, fmt.Sprint("larger than ", bodyCap, " bytes"))
			case tt.code != 0:
				refused(t, err, tt.code, tt.reason, "http://a.test"+path)
			case err != nil || len(got.Body) != bodyCap || got.Headers["content-encoding"] != "":
				t.Errorf("got %d bytes, %v, %v", len(got.Body), got.Headers, err)
			}
		})
	}
}

func TestOtherCodingsAreRefused(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Encoding"] = strings.Split(r.URL.Query().Get("c"), ";")
		_, _ = io.WriteString(w, "x")
	})
	for _, coding := range []string{"br", "zstd", "deflate", "gzip,gzip", "gzip|gzip", "identity,gzip"} {
		_, err := w.client(small).Fetch(t.Context(), granted(t, "http://a.test"), "", get("http://a.test/?c="+coding))
		refused(t, err, abi.CodeUnavailable, "encoding", "content coding")
	}
}

// Replacing a short secret must not make a body exceed its limit.
func TestScrubbedBodyIsCapped(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", bodyCap)) })
	p := granted(t, "http://a.test")
	p.Secrets = []egress.Secret{secret(t, "short", "x", "X-Key", "http://b.test")}
	_, err := w.client(small).Fetch(t.Context(), p, "", get("http://a.test/"))
	refused(t, err, abi.CodeLimit, "response_bytes", "larger than")
}

func TestHeaderCap(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.raw(apiAddr+":80", heard(func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(c, "X-Fill: "+strings.Repeat("x", 100)+"\r\n"); err != nil {
				return
			}
		}
	}))
	w.raw(apiAddr+":81", heard(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 "+strings.Repeat("x", 1<<20)) }))
	w.raw(apiAddr+":82", heard(func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"); err != nil {
				return
			}
		}
	}))
	for _, port := range []string{"80", "81", "82"} {
		_, err := w.client(small).Fetch(t.Context(), granted(t, "http://a.test:"+port), "", get("http://a.test:"+port))
		refused(t, err, abi.CodeLimit, "response_headers", "larger than 8192 bytes")
	}
}

func TestRequestCaps(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	p := granted(t, "http://a.test")
	req := abi.FetchRequest{Method: "POST", URL: "http://a.test/", Body: strings.Repeat("x", bodyCap+1)}
	_, err := w.client(small).Fetch(t.Context(), p, "", req)
	refused(t, err, abi.CodeLimit, "request_bytes", "at most 65536")
	req = abi.FetchRequest{Method: "POST", URL: "http://a.test/", Headers: map[string]string{"X-Fill": strings.Repeat("x", 32<<10)}}
	_, err = w.client(small).Fetch(t.Context(), p, "", req)
	refused(t, err, abi.CodeLimit, "request_bytes", "at most 32768")
	req = abi.FetchRequest{Method: "POST", URL: "http://a.test/", Body: "x", BodyBase64: []byte("y")}
	_, err = w.client(small).Fetch(t.Context(), p, "", req)
	refused(t, err, abi.CodeInvalid, "request", "give one")
}

// drip writes one byte at a time until the peer is gone: each read is quick, the whole
// takes forever.
func drip(c net.Conn, prefix string) {
	if _, err := io.WriteString(c, prefix); err != nil {
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := io.WriteString(c, "x"); err != nil {
			return
		}
	}
}

func TestWholeCallDeadline(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.raw(apiAddr+":80", heard(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n") }))
	w.raw(apiAddr+":81", heard(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nX-Slow: ") }))
	w.raw(apiAddr+":82", heard(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }))
	w.raw(apiAddr+":83", heard(func(c net.Conn) {
		drip(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff")
	}))
	p := granted(t, "http://a.test", "http://a.test:81", "http://a.test:82", "https://a.test:82", "http://a.test:83")
	for _, url := range []string{"http://a.test", "http://a.test:81", "http://a.test:82", "https://a.test:82", "http://a.test:83"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			c := w.client(func(o *egress.Options) { o.Timeout = 100 * time.Millisecond })
			_, err := c.Fetch(t.Context(), p, "", get(url))
			refused(t, err, abi.CodeDeadline, "timeout", "within 100ms")
		})
	}
}

// Each redirect is quick, all of them together are not.
func TestDeadlineSpansRedirects(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		http.Redirect(w, r, "/", http.StatusFound)
	})
	c := w.client(func(o *egress.Options) { o.Timeout, o.MaxRedirects = 100*time.Millisecond, 1<<30 })
	_, err := c.Fetch(t.Context(), granted(t, "http://a.test"), "", get("http://a.test/"))
	refused(t, err, abi.CodeDeadline, "timeout", "within 100ms")
}
