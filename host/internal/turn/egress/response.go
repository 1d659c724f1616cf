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

// readResponse reads the body and builds the guest's result.
func (h *hop) readResponse(ctx context.Context, resp *http.Response) (abi.FetchResponse, *abi.Error) {
	defer func() { _ = resp.Body.Close() }()
	if resp.Body != http.NoBody && resp.ContentLength > h.client.opt.MaxResponseBody {
		return abi.FetchResponse{}, h.bodyTooLarge()
	}
	raw, broken := h.readBody(ctx, resp)
	if broken != nil {
		return abi.FetchResponse{}, broken
	}
	body := h.scrub.Text(string(raw))
	if int64(len(body)) > h.client.opt.MaxResponseBody {
		return abi.FetchResponse{}, h.bodyTooLarge()
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

// readBody reads a body. It decodes gzip, which some servers send although the request
// asks for no coding.
func (h *hop) readBody(ctx context.Context, resp *http.Response) ([]byte, *abi.Error) {
	// Both sides of the decoder are bounded: gzip can expand little into much, and much
	// into nothing.
	var body io.Reader = http.MaxBytesReader(nil, resp.Body, h.client.opt.MaxResponseBody)
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	switch {
	case coding == "" || coding == "identity" || resp.Body == http.NoBody:
	case coding == "gzip" || coding == "x-gzip":
		decoder, err := gzip.NewReader(body)
		if err != nil {
			return nil, h.bodyError(ctx, err)
		}
		body = http.MaxBytesReader(nil, decoder, h.client.opt.MaxResponseBody)
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	default:
		return nil, fault(abi.CodeUnavailable, ReasonEncoding, "%s answered with the content coding %q, asked for none", h.displayURL(), truncate(h.scrub.Text(coding)))
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, h.bodyError(ctx, err)
	}
	return raw, nil
}

func (h *hop) bodyError(ctx context.Context, err error) *abi.Error {
	var large *http.MaxBytesError
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &large):
		return h.bodyTooLarge()
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return fault(abi.CodeUnavailable, ReasonEncoding, "the gzip body from %s is corrupt", h.displayURL())
	}
	return h.networkError(ctx, err)
}

func (h *hop) bodyTooLarge() *abi.Error {
	return fault(abi.CodeLimit, ReasonBody, "the body of the answer from %s is larger than %d bytes ([limits.http] response)", h.displayURL(), h.client.opt.MaxResponseBody)
}
