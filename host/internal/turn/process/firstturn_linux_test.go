package process

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/grpc"

	"skep/abi/pluginpb"
)

// readyAgent answers Warm. Its process has ended by then if ends is set.
type readyAgent struct {
	pluginpb.AgentClient
	ends chan struct{}
}

func (a readyAgent) Warm(context.Context, *pluginpb.StartRequest, ...grpc.CallOption) (*pluginpb.Outcome, error) {
	if a.ends != nil {
		close(a.ends)
	}
	return &pluginpb.Outcome{}, nil
}

// A process that ends between the answer to Warm and its first turn gets no turn, and
// there is a reason for it.
func TestEndedBeforeFirstTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends  bool
		want  error
		turns int
	}{
		"runs": {false, nil, 1},
		"ends": {true, errEndedAtStart, 0},
	} {
		done := make(chan struct{})
		p := &process{service: newHostService(), guard: &guardedProcess{done: done}, log: slog.New(slog.DiscardHandler)}
		agent := readyAgent{}
		if c.ends {
			agent.ends = done
		}
		p.agent = agent
		if err := p.beginFirstTurn(t.Context()); !errors.Is(err, c.want) || p.turns != c.turns {
			t.Errorf("%s: %v, %d turns", name, err, p.turns)
		}
	}
}
