package uamp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// countedBody counts the bytes that are read of a body.
type countedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// heldRuntime holds each message until two more of the call are read, and keeps the most that did.
type heldRuntime struct {
	gateway.Runtime
	read, taken, ahead atomic.Int64
	// size is of a frame, all of the whole call, in bytes.
	size, all int64
}

func (h *heldRuntime) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	taken := h.taken.Add(h.size)
	for h.read.Load() < min(taken+2*h.size, h.all) && gateway.Pause(ctx, time.Millisecond) {
	}
	h.ahead.Store(max(h.ahead.Load(), h.read.Load()-taken))
	return h.Runtime.Ask(ctx, c, a)
}

// TestStreamReadAhead (G-057, U-055): of a call whose frames are taken more slowly than they come
// the host reads no more than the next one while the method has another, and takes all of them in
// the end.
func TestStreamReadAhead(t *testing.T) {
	t.Parallel()
	const frames, content, room = 40, 60 << 10, 64 << 10
	held := &heldRuntime{}
	h := newUnstartedHive(t, func(o *uamp.Options) {
		held.Runtime = o.Runtime
		o.Runtime, o.MaxBody = held, room
	})
	serve := h.server.Config.Handler
	h.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = countedBody{r.Body, &held.read}
		serve.ServeHTTP(w, r)
	})
	h.server.Start()
	var list []*uamppb.Frame
	for range frames {
		e := newAsk("calc", strings.Repeat("x", content))
		e.Time = e.Time.Truncate(time.Second) // frames have one size
		e.Intent = envelope.Inform
		f := &uamppb.Frame{Frame: &uamppb.Frame_Envelope{Envelope: &uamppb.Envelope{Json: []byte(signedBy(t, h.own, e))}}}
		held.size = int64(proto.Size(f)) + 5 // the prefix of a message
		held.all += held.size
		list = append(list, f)
	}
	c, ctx := h.overGRPC(t, "lab-token")
	on, err := c.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for _, f := range list {
			_ = on.Send(f) // Recv has why it fails
		}
		_ = on.CloseSend()
	}()
	for n := range frames {
		if f, err := on.Recv(); err != nil || f.GetEnvelope().GetIntent() != "progress" {
			t.Fatalf("receipt %d: %v, %v", n, f, err)
		}
	}
	if ahead := held.ahead.Load(); ahead > 2*held.size {
		t.Errorf("%d bytes wait, at most two frames of %d", ahead, held.size)
	}
}
