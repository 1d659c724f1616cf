//go:build unix

package uamp_test

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/gateways/uamp/uamppb"
)

// BenchmarkGRPCListener measures the computing time of an envelope that repeats one, on the
// public listener and on one of gRPC's own, with its client.
func BenchmarkGRPCListener(b *testing.B) {
	h := newHive(b, nil)
	e := newAsk("calc", strings.Repeat("x", 4<<10))
	in := &uamppb.Envelope{Json: []byte(signedBy(b, h.own, e))}
	public, ctx := h.overGRPC(b, "lab-token")
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := h.g.NewServerFor(lab)
	go func() { _ = server.Serve(l) }()
	b.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	for name, c := range map[string]uamppb.AgentClient{"public": public, "own": uamppb.NewAgentClient(conn)} {
		b.Run(name, func(b *testing.B) {
			before := computing(b)
			for b.Loop() {
				if _, err := c.Send(ctx, in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(computing(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// computing is the processor time of the process, in ns.
func computing(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
