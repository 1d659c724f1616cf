package contract_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"skep/spec/gateways/amp/amppb"
)

// openAMPGRPC opens a call of gRPC over which texts go both ways.
func openAMPGRPC(t testing.TB, url, token string, take func(string)) func(context.Context, string, string) error {
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	call, err := amppb.NewAgentMeshClient(conn).Connect(metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token))
	if err != nil {
		t.Fatal(err)
	}
	go func() { // it ends with the connection
		for {
			m, err := call.Recv()
			if err != nil {
				return
			}
			take(string(m.GetRawJson()))
		}
	}()
	var writing sync.Mutex
	return func(_ context.Context, _, text string) error {
		writing.Lock()
		defer writing.Unlock()
		return call.Send(&amppb.Message{RawJson: []byte(text)})
	}
}
