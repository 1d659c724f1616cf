package envelope

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"slices"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// The defaults of a body.
const (
	encodingUTF8    = "utf-8"
	compressionNone = "none"
)

// encodings and compressions are those that are understood (U-017).
var (
	encodings    = []string{encodingUTF8, "base64", "base64url"}
	compressions = []string{compressionNone, "gzip", "deflate", "br", "zstd"}
)

// Limits of what a compressed content becomes: so many times its size, except where that
// is little.
const (
	maxRatio      = 10
	smallInflated = 64 << 10 // bytes
	zstdMemory    = 8 << 20  // bytes, of its window
)

// check refuses a body that cannot be read.
func (b Body) check() error {
	if _, _, err := mime.ParseMediaType(b.Type); err != nil {
		return Faultf(Unsupported, "body.type %.60q is not a media type", b.Type)
	}
	if !slices.Contains(encodings, b.Encoding) {
		return Faultf(Unsupported, "body.encoding %.40q is none of utf-8, base64, base64url", b.Encoding)
	}
	if !slices.Contains(compressions, b.Compression) {
		return Faultf(Unsupported, "body.compression %.40q is none of none, gzip, deflate, br, zstd", b.Compression)
	}
	if b.Compression != compressionNone && b.Encoding == encodingUTF8 {
		return malformed("body.content is compressed, and its encoding is not base64 or base64url")
	}
	return nil
}

// Decode returns the content of a body, at most so many bytes of it.
func (b Body) Decode(most int) ([]byte, error) {
	content, err := b.decoded()
	if err != nil {
		return nil, malformed("body.content is not %s", b.Encoding)
	}
	if b.Compression != compressionNone {
		most = min(most, max(maxRatio*len(content), smallInflated))
		content, err = inflate(b.Compression, content, most+1)
	}
	switch {
	case len(content) > most, errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, Faultf(TooLarge, "body.content has more than %d bytes", most)
	case err != nil:
		return nil, malformed("body.content cannot be decompressed as %s", b.Compression)
	}
	return content, nil
}

func (b Body) decoded() ([]byte, error) {
	switch b.Encoding {
	case "base64":
		return base64.StdEncoding.DecodeString(b.Content)
	case "base64url":
		return base64.RawURLEncoding.DecodeString(b.Content)
	}
	return []byte(b.Content), nil
}

// inflate decompresses up to so many bytes.
func inflate(compression string, content []byte, most int) ([]byte, error) {
	var r io.Reader
	var err error
	in := bytes.NewReader(content)
	switch compression {
	case "gzip":
		r, err = gzip.NewReader(in)
	case "deflate":
		r, err = zlib.NewReader(in)
	case "br":
		r = brotli.NewReader(in)
	case "zstd":
		d, failed := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMemory), zstd.WithDecoderLowmem(true))
		if failed != nil {
			return nil, failed
		}
		defer d.Close()
		r = d
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, int64(most)))
}

// NewBody returns a content as a body: text as it is, anything else in base64.
func NewBody(mediaType string, content []byte) Body {
	if utf8.Valid(content) {
		return Body{Type: mediaType, Content: string(content), Encoding: encodingUTF8, Compression: compressionNone}
	}
	return Body{Type: mediaType, Content: base64.StdEncoding.EncodeToString(content), Encoding: "base64", Compression: compressionNone}
}
