package envelope_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"skep/host/internal/gateway/uamp/envelope"
)

// compressed are the writers of the compressions.
var compressed = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		e, _ := zstd.NewWriter(w)
		return e
	},
}

func compress(t *testing.T, compression string, content []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := compressed[compression](&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// TestDecode (U-017): every encoding and compression is read.
func TestDecode(t *testing.T) {
	t.Parallel()
	const want = "größer"
	bodies := []envelope.Body{
		{Content: want, Encoding: "utf-8", Compression: "none"},
		{Content: base64.StdEncoding.EncodeToString([]byte(want)), Encoding: "base64", Compression: "none"},
		{Content: base64.RawURLEncoding.EncodeToString([]byte(want)), Encoding: "base64url", Compression: "none"},
	}
	for compression := range compressed {
		bodies = append(bodies, envelope.Body{Content: compress(t, compression, []byte(want)), Encoding: "base64", Compression: compression})
	}
	for _, b := range bodies {
		if got, err := b.Decode(len(want)); err != nil || string(got) != want {
			t.Errorf("%+v: %q, %v", b, got, err)
		}
		if _, err := b.Decode(len(want) - 1); codeOf(t, err) != envelope.TooLarge {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// TestBombs (V-U34, U-017): a content that becomes much larger than it was is refused
// before it is whole.
func TestBombs(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 1<<20)
	for compression := range compressed {
		b := envelope.Body{Content: compress(t, compression, zeros), Encoding: "base64", Compression: compression}
		if _, err := b.Decode(64 << 20); codeOf(t, err) != envelope.TooLarge {
			t.Errorf("%s: %v", compression, err)
		}
	}
}

// TestUnknownBodies (U-017, U-105): what is not understood is 4.15, what contradicts
// itself 4.00.
func TestUnknownBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]envelope.Code{
		`{"type":"text/plain; charset=utf-8","content":"x"}`:                               "",
		`{"type":"plain text","content":"x"}`:                                              envelope.Unsupported,
		`{"type":"text/plain","content":"x","encoding":"utf-16"}`:                          envelope.Unsupported,
		`{"type":"text/plain","content":"x","compression":"lzma","encoding":"base64"}`:     envelope.Unsupported,
		`{"type":"text/plain","content":"x","compression":"gzip"}`:                         envelope.Malformed,
		`{"type":"text/plain","content":"` + strings.Repeat("x", 10) + `","encoding":" "}`: envelope.Unsupported,
	} {
		if _, err := reader.Read([]byte(text(map[string]string{"body": body}))); codeOf(t, err) != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	for _, b := range []envelope.Body{
		{Content: "!", Encoding: "base64", Compression: "none"},
		{Content: "eA==", Encoding: "base64", Compression: "gzip"},
		{Content: "eA==", Encoding: "base64", Compression: "deflate"},
		{Content: "eA==", Encoding: "base64", Compression: "br"},
		{Content: "eA==", Encoding: "base64", Compression: "zstd"},
	} {
		if _, err := b.Decode(10); codeOf(t, err) != envelope.Malformed {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// TestStatuses (U-104, U-105): the document's codes with their statuses, and which may be
// tried again.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[envelope.Code]struct {
		status int
		retry  bool
	}{
		envelope.Unauthenticated: {401, false}, envelope.Unauthorized: {403, false}, envelope.MissingSeq: {409, true}, envelope.TooLarge: {413, false}, envelope.Busy: {504, true},
		envelope.Malformed: {400, false}, envelope.TooMany: {429, true}, "9.99": {500, false},
	} {
		if code.Status() != want.status || code.Retry() != want.retry {
			t.Errorf("%s: %d, %v", code, code.Status(), code.Retry())
		}
	}
}
