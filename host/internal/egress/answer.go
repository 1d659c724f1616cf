package egress

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"skep/abi"
)

// answer reads the body and makes the guest's answer.
func (h *hop) answer(ctx context.Context, resp *http.Response) (abi.FetchResponse, *abi.Error) {
	defer func() { _ = resp.Body.Close() }()
	if resp.Body != http.NoBody && resp.ContentLength > h.c.o.MaxBody {
		return abi.FetchResponse{}, h.tooLarge()
	}
	raw, broken := h.readBody(ctx, resp)
	if broken != nil {
		return abi.FetchResponse{}, broken
	}
	body := h.scrub.text(string(raw))
	if int64(len(body)) > h.c.o.MaxBody {
		return abi.FetchResponse{}, h.tooLarge()
	}
	if body != string(raw) {
		resp.Header.Del("Content-Length")
	}
	out := abi.FetchResponse{Status: resp.StatusCode, Headers: responseHeader(resp.Header, h.scrub)}
	if utf8.ValidString(body) {
		out.Body = body
	} else {
		out.BodyBase64 = []byte(body)
	}
	return out, nil
}

// readBody reads a body, which is decoded when the server coded it though it
// was asked not to.
func (h *hop) readBody(ctx context.Context, resp *http.Response) ([]byte, *abi.Error) {
	// Both sides of the decoder are bounded: gzip makes much of little, and
	// nothing of much.
	var body io.Reader = http.MaxBytesReader(nil, resp.Body, h.c.o.MaxBody)
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	switch {
	case coding == "" || coding == "identity" || resp.Body == http.NoBody:
	case coding == "gzip" || coding == "x-gzip":
		decoder, err := gzip.NewReader(body)
		if err != nil {
			return nil, h.unread(ctx, err)
		}
		body = http.MaxBytesReader(nil, decoder, h.c.o.MaxBody)
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	default:
		return nil, fault(abi.CodeUnavailable, ReasonEncoding, "%s answered with the content coding %q, asked for none", h.shown(), cut(h.scrub.text(coding)))
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, h.unread(ctx, err)
	}
	return raw, nil
}

func (h *hop) unread(ctx context.Context, err error) *abi.Error {
	var large *http.MaxBytesError
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &large):
		return h.tooLarge()
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return fault(abi.CodeUnavailable, ReasonEncoding, "the gzip body from %s is corrupt", h.shown())
	}
	return h.failed(ctx, err)
}

func (h *hop) tooLarge() *abi.Error {
	return fault(abi.CodeLimit, ReasonBody, "the body of the answer from %s is larger than %d bytes ([limits.http] response)", h.shown(), h.c.o.MaxBody)
}
