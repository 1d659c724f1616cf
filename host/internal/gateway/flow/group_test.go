package flow_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/flow"
)

// TestGroupIsTheSameOnEveryRead (U-069): what several agents emit has the order of the log,
// however a reader connects, loses emissions and sees turns run again.
func TestGroupIsTheSameOnEveryRead(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		turns := newTask(r)
		var want []string
		for _, turn := range turns {
			for _, e := range turn.emissions {
				if e.chunk && (turn.exchange == 0 || turn.exchange == rowOf(turn.agent)) {
					want = append(want, turn.agent+" "+e.text)
				}
			}
		}
		want = append(want, "asked done", "other done")
		for range 3 {
			group := flow.OpenGroup(connect(r, turns, r.IntN(len(turns)), true))
			for _, agent := range []string{"asked", "other"} {
				group.Add(answers{}, agent, rowOf(agent))
			}
			var got []string
			for {
				p, err := group.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				switch p.Kind {
				case gateway.Chunk:
					got = append(got, p.Agent+" "+p.Text)
				case gateway.End:
					got = append(got, fmt.Sprint(p.Agent, " ", p.Answer.Body))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: read %q, the log has %q", seed, got, want)
			}
			if err := group.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rowOf is the row of the message to an agent.
func rowOf(agent string) int64 {
	if agent == "asked" {
		return askedRow
	}
	return otherRow
}
