package uamp_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// TestCredentialFaults (U-041): a caller that is not identified learns whether its token does not
// count or nothing was shown, over HTTP and gRPC.
func TestCredentialFaults(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	text := signedBy(t, h.own, newAsk("calc", "2+2"))
	for name, c := range map[string]struct {
		header          []string
		want, challenge string
	}{
		"nothing":        {nil, "no credential is shown", "Bearer"},
		"a wrong token":  {[]string{"Authorization", "bearer wrong"}, "the bearer token is not valid", `Bearer error="invalid_token"`},
		"another scheme": {[]string{"Authorization", "Basic bGFiOmxhYg=="}, "Authorization has no bearer token", "Bearer"},
	} {
		r := h.post(t, "", text, c.header...)
		unsigned(t, name, r, envelope.Unauthenticated)
		if !strings.Contains(r.text, c.want) || r.header.Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: %s %s", name, r.header.Get("WWW-Authenticate"), r.text)
		}
		if r := h.call(t, http.MethodGet, "/v1/stream/str-1", "", "", c.header...); !strings.Contains(r.text, c.want) {
			t.Errorf("%s: a stream: %s", name, r.text)
		}
	}
	c, ctx := h.overGRPC(t, "wrong")
	if _, err := c.Send(ctx, &uamppb.Envelope{Json: []byte(text)}); grpcstatus.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "4.01 the bearer token is not valid") {
		t.Error(err)
	}
}
