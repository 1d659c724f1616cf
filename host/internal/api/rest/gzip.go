package rest

import (
	"compress/gzip"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// minCompressed is the size in bytes from which an answer is compressed.
const minCompressed = 2 << 10

// compressor compresses the body of one answer (RFC 9110:
// https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.3). An event stream is not
// compressed: its events must leave at once.
type compressor struct {
	pool *sync.Pool
	zip  *gzip.Writer
}

// newCompressors returns the pool of a handler's writers.
func newCompressors() *sync.Pool {
	return &sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is one of the package's own
		}
		return w
	}}
}

// begin decides by the headers, and completes them.
func (c *compressor) begin(w http.ResponseWriter, r *http.Request, status int, to writerFunc) {
	head := w.Header()
	if status != http.StatusOK || !isCompressible(head) {
		return
	}
	head.Add("Vary", "Accept-Encoding")
	if r.Method == http.MethodHead || !acceptsGzip(r.Header) {
		return
	}
	head.Del("Content-Length")
	head.Set("Content-Encoding", "gzip")
	c.zip = c.pool.Get().(*gzip.Writer)
	c.zip.Reset(to)
}

// end writes what is left.
func (c *compressor) end() error {
	if c.zip == nil {
		return nil
	}
	err := c.zip.Close()
	c.zip.Reset(nil) // the pool must not keep the request
	c.pool.Put(c.zip)
	c.zip = nil
	return err
}

func isCompressible(head http.Header) bool {
	if n, err := strconv.Atoi(head.Get("Content-Length")); err == nil && n < minCompressed {
		return false
	}
	kind, _, _ := mime.ParseMediaType(head.Get("Content-Type"))
	switch kind {
	case "application/json", "text/html", "application/yaml":
		return head.Get("Content-Encoding") == ""
	}
	return false
}

// acceptsGzip reports whether the caller accepts gzip by name.
func acceptsGzip(head http.Header) bool {
	for _, coding := range strings.Split(strings.Join(head.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighed := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, q, _ := strings.Cut(weight, "=")
		n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !weighed || err == nil && n > 0
	}
	return false
}

// writerFunc is a function that writes.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
