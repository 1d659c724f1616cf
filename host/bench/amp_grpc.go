package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"skep/spec/gateways/amp/amppb"
)

// overGRPC is a subject that asks by calls of Invoke, over a connection of each client.
func (a *ampAsker) overGRPC(url string, clients int) subject {
	return subject{"AMP over gRPC", func(span time.Duration) (int, time.Duration, error) {
		meshes := make([]amppb.AgentMeshClient, clients)
		for n := range meshes {
			conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return 0, 0, err
			}
			defer func() { _ = conn.Close() }()
			meshes[n] = amppb.NewAgentMeshClient(conn)
		}
		ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+a.token)
		return parallel(clients, span, func(n int) error {
			_, text, err := a.newRequest(n)
			if err != nil {
				return err
			}
			answer, err := meshes[n].Invoke(ctx, &amppb.Message{RawJson: text})
			if err == nil && !strings.Contains(string(answer.GetRawJson()), trivialAnswer) {
				err = fmt.Errorf("it is answered by %.1000s", answer.GetRawJson())
			}
			return err
		})
	}}
}
