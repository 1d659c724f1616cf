package egress_test

import (
	"fmt"
	"testing"

	"skep/abi"
)

func TestRefusedHeaders(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	p := granted(t, "http://a.test")
	for _, name := range []string{
		"Host", "host", "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "transfer_encoding", "Content-Length",
		"Content_Length", "Upgrade", "HTTP2-Settings", "Expect", "Accept-Encoding", "Forwarded", "Via", "X-Real-IP",
		"Proxy-Authorization", "Proxy-Connection", "proxy_x", "X-Forwarded-For", "X-Forwarded-Host",
		"X-HTTP-Method-Override", "X_HTTP_METHOD_OVERRIDE", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL",
	} {
		req := get("http://a.test/")
		req.Headers = map[string]string{name: "x"}
		_, err := w.client().Fetch(t.Context(), p, "", req)
		refused(t, err, abi.CodeInvalid, "header", name)
	}
	for _, name := range []string{"", " ", "a b", "a:b", "a\r\nb", "ä", "a\x00", "(a)"} {
		req := get("http://a.test/")
		req.Headers = map[string]string{name: "x"}
		_, err := w.client().Fetch(t.Context(), p, "", req)
		refused(t, err, abi.CodeInvalid, "header", fmt.Sprintf("%q is not the name", name))
	}
	for _, value := range []string{"a\r\nX: y", "a\nb", "a\rb", "a\x00b", "\x7f"} {
		req := get("http://a.test/")
		req.Headers = map[string]string{"X-Value": value}
		_, err := w.client().Fetch(t.Context(), p, "", req)
		refused(t, err, abi.CodeInvalid, "header", "X-Value has a line break")
	}
	req := get("http://a.test/")
	req.Headers = map[string]string{"x-a": "1", "X-A": "2"}
	_, err := w.client().Fetch(t.Context(), p, "", req)
	refused(t, err, abi.CodeInvalid, "header", "X-A is given twice")
	if len(w.dialled) > 0 {
		t.Errorf("dialled %v", w.dialled)
	}
}
