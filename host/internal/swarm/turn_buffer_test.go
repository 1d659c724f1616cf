package swarm_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// What running turns hold in the host's memory is bounded over all turns: a tenant has
// half of it, the others still get theirs, and a commit gives it back.
func TestTurnBuffers(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {}}), func(h *hive) { h.opt.TurnBuffers = 5 << 20 })
	holding, release := make(chan string), make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		body := incoming(tn).Payload.Body
		_, fault := tn.PutBlob(bytes.Repeat([]byte(body[:1]), 3<<20)) // 1 MiB is free
		if strings.HasSuffix(body, "hold") {
			holding <- fmt.Sprint(fault)
			select {
			case <-release:
			case <-ctx.Done():
				return failed(context.Cause(ctx))
			}
		}
		return tell(tn, fmt.Sprint(fault))
	}
	refused := swarm.TurnBuffersFault(abi.OpBlobPut).Error()
	first := h.mustPost("1 hold", of("acme"))
	if got := <-holding; got != "<nil>" {
		t.Fatalf("the first turn: %s", got)
	}
	if a := h.ask("2", of("acme"), func(p *swarm.Post) { p.Principal.ID = "bob" }); a.Body != refused {
		t.Errorf("the tenant's second turn: %q", a.Body)
	}
	if a := h.ask("3", of("free")); a.Body != "<nil>" {
		t.Errorf("another tenant: %q", a.Body)
	}
	close(release)
	if a := h.answer(first); a.Body != "<nil>" {
		t.Errorf("the first turn: %q", a.Body)
	}
	if a := h.ask("4", of("acme")); a.Body != "<nil>" {
		t.Errorf("after the commit: %q", a.Body)
	}
}

// slowLog is a log whose first line waits.
type slowLog struct{ goOn chan struct{} }

func (l slowLog) Write(line []byte) (int, error) {
	<-l.goOn
	return len(line), nil
}

// Bytes that a turn holds and releases are those of the buffers again, and nothing is
// held once the turn is over: before its answer, though the host still logs its lines.
func TestHoldAndReleaseBytes(t *testing.T) {
	t.Parallel()
	log := slowLog{make(chan struct{})}
	h := newHive(t, func(h *hive) {
		h.opt.TurnBuffers, h.opt.Logger = 2<<20, slog.New(slog.NewTextHandler(log, nil))
	})
	var last *swarm.Turn
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		last = tn
		var got []bool
		for range 100 {
			got = append(got[:0], tn.Buffer().HoldBytes(1<<20), tn.Buffer().HoldBytes(1<<20), tn.Buffer().HoldBytes(1))
			if !got[1] {
				break
			}
			tn.Buffer().ReleaseBytes(2 << 20)
		}
		tn.Buffer().HoldBytes(2 << 20)
		tn.Log(abi.LogRequest{Message: "held"})
		return tell(tn, fmt.Sprint(got))
	}
	for range 2 {
		if a := h.ask("go"); a.Body != "[true true false]" {
			t.Errorf("%q", a.Body)
		}
	}
	close(log.goOn)
	h.stop()
	if last.Buffer().HoldBytes(1) {
		t.Error("a turn that is over holds bytes")
	}
	last.Buffer().ReleaseBytes(1)
}

// A turn whose task ends under it commits nothing, and holds nothing afterwards.
func TestStoppedTurnHoldsNothing(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.opt.TurnBuffers = 2 << 20 })
	held := make(chan bool)
	h.agents.by["boss"] = func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		got := tn.Buffer().HoldBytes(2 << 20)
		if incoming(tn).Payload.Body == "stay" {
			held <- got
			<-ctx.Done()
			return failed(context.Cause(ctx))
		}
		return tell(tn, fmt.Sprint(got))
	}
	r := h.mustPost("stay", task("stays"))
	if !<-held {
		t.Fatal("the first turn holds nothing")
	}
	if a := h.ask("go"); a.Body != "false" {
		t.Fatalf("beside it: %q", a.Body)
	}
	if err := h.rt.CancelTask(t.Context(), r.Task, "alice"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its bytes are free", func() bool { return h.ask("go").Body == "true" })
}
