package uamp_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/spec/gateways/uamp/uamppb"
	"skep/spec/mail"
)

// busyCalls is a service that ends each call with a status, and names in its trailer when to call
// again.
type busyCalls struct {
	uamppb.UnimplementedAgentServer
	code    codes.Code
	message string
	after   string // empty for none
}

// Stream implements [uamppb.AgentServer].
func (b busyCalls) Stream(call grpc.BidiStreamingServer[uamppb.Frame, uamppb.Frame]) error {
	_, _ = call.Recv() // before it, nothing is in doubt
	if b.after != "" {
		call.SetTrailer(metadata.Pairs("retry-after", b.after))
	}
	return grpcstatus.Error(b.code, b.message)
}

// TestCallBusy (U-055, U-104): an envelope whose call the partner refuses for now waits as long as
// the trailer wants, or the header of a response that is no call, as over HTTP.
func TestCallBusy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve http.Handler
		state gateway.CarriedState
		wait  time.Duration
	}{
		"unavailable":          {busyHandler(codes.Unavailable, "5.04 too many connections", "7"), gateway.Later, 7 * time.Second},
		"above its rate":       {busyHandler(codes.ResourceExhausted, "4.29 too many", "1.5"), gateway.Later, 1500 * time.Millisecond},
		"a quota":              {busyHandler(codes.ResourceExhausted, "quota", "60"), gateway.Later, time.Minute},
		"no word when":         {busyHandler(codes.Unavailable, "5.04 too many connections", ""), gateway.Unanswered, 0},
		"another word":         {busyHandler(codes.Unavailable, "5.04 too many connections", "soon"), gateway.Unanswered, 0},
		"too large":            {busyHandler(codes.ResourceExhausted, "4.13 too large", ""), gateway.Refused, 0},
		"refused for good":     {busyHandler(codes.PermissionDenied, "4.03 no", "7"), gateway.Refused, 0},
		"a proxy":              {statusHandler(http.StatusServiceUnavailable, "9"), gateway.Later, 9 * time.Second},
		"a proxy, too many":    {statusHandler(http.StatusTooManyRequests, "9"), gateway.Later, 9 * time.Second},
		"a proxy without word": {statusHandler(http.StatusServiceUnavailable, ""), gateway.Later, 0},
	} {
		o := newOut(t)
		o.p.URL, o.p.Options["binding"] = serveClear(t, c.serve).URL, "grpc"
		if got := o.carry(t, name, outgoing("busy "+name, mail.Broadcast, "x", "news"), c.state); got.Wait != c.wait {
			t.Errorf("%s: again after %s: %s", name, got.Wait, got.Reason)
		}
	}
}

func busyHandler(code codes.Code, message, after string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := grpc.NewServer()
		uamppb.RegisterAgentServer(s, busyCalls{code: code, message: message, after: after})
		s.ServeHTTP(w, r)
	})
}

func statusHandler(code int, after string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
	})
}

// TestCallBusyHost (U-055, U-104): a host of ours that has as many connections of a realm as it
// may names when to call again, and a caller of ours waits so long.
func TestCallBusyHost(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.Sessions = 1 })
	h.expose("calc", gatewaytest.Echo)
	o := newOut(t)
	o.host(t, h)
	o.p.Options["binding"] = "grpc"
	o.rt.AddPartner(o.p)
	other, ctx := h.overGRPC(t, "lab-token")
	if _, err := other.Stream(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return h.g.Health().Connections == 1 })
	if got := o.carry(t, "busy", outgoing("busy", mail.Request, "calc", "2+2"), gateway.Later); got.Wait != 10*time.Second {
		t.Errorf("%+v", got)
	}
}
