package door_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// A reader that stops for ten minutes, in which its agent shows more than the host keeps for
// a reader and ends, gets each piece when it goes on (case 21 of the contract).
func TestReaderStopsForTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pieces = 700
		k, stopped := newKit(t), make(chan struct{})
		piece := func(n int) string { return fmt.Sprintf("%d %s", n, strings.Repeat("x", 1<<10)) }
		k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
			for n := range pieces {
				text := piece(n)
				tn.Emit(abi.EmitRequest{Chunk: &text})
				if n == 0 {
					<-stopped
				}
			}
			return respond(tn, "done")
		})
		x := k.mustAsk(t, acme(), ask("m1", "calc", "go"))
		s, err := k.Follow(t.Context(), x, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n := range pieces {
			p, err := s.Next(t.Context())
			if err != nil || p.Kind != gateway.Chunk || p.N != int64(n) || p.Text != piece(n) {
				t.Fatalf("piece %d is %s %d with %d bytes, %v", n, p.Kind, p.N, len(p.Text), err)
			}
			if n == 0 {
				close(stopped)
				wantAnswer(t, k.wait(t, x), gateway.Done, "done")
				time.Sleep(10 * time.Minute)
			}
		}
		p, err := s.Next(t.Context())
		if err != nil || p.Kind != gateway.End || p.Answer.Body != "done" {
			t.Fatalf("the end is %+v, %v", p, err)
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	})
}
