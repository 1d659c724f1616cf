package rest_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"skep/host/internal/api/rest"
)

// A gRPC call whose caller stays connected and reads nothing ends after Stall. Its Send has no
// context: the write deadline resets the stream, which ends the request's context.
func TestMountStalledGRPCReader(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	m := &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) {
		s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			piece := wrapperspb.Bytes(bytes.Repeat([]byte("x"), 64<<10))
			for r.Context().Err() == nil {
				if err := stream.SendMsg(piece); err != nil {
					return err
				}
			}
			return context.Cause(r.Context())
		}))
		s.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context()))) // it returns with the call
		ended <- r.Context().Err()
	}}
	server := httptest.NewUnstartedServer(mounted(t, rest.Options{Stall: 200 * time.Millisecond}, rest.Mount{Handler: m, MaxBody: -1, Streams: true}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(server.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/toy/Stream"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the call ended without the end of its request")
		}
	case <-time.After(time.Minute):
		t.Fatal("the call is held for ever")
	}
}
