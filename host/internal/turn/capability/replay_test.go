package capability

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// workday is a turn with one of everything, on real records.
func workday(v *visit) {
	v.call(abi.OpRandom, "{}")
	v.call(abi.OpHTTPFetch, "one")
	_ = v.t.Clock.Sleep(v.ctx, 0)
	v.mail(mail.ToolTaskComplete, obj{"finish_message": v.call(abi.OpClockNow, "{}")})
	v.output = []byte(`{"notes":["done"]}`)
}

// recordOf runs one task and returns the record of its first turn.
func recordOf(t *testing.T, turn func(*visit)) (swarm.Record, [32]byte) {
	t.Helper()
	h := newHost(t)
	h.modules["boss"] = guest{"m1", turn}
	h.start(0, false)
	defer h.stop()
	if _, err := h.ask(); err != nil {
		t.Fatal(err)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := h.rt.Task(context.Background(), h.key())
	if err != nil {
		t.Fatal(err)
	}
	secret, err := h.store.Secret(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return rec, swarm.DeriveSeed(secret, snap.Task, 1)
}

// offline is a guest as a replay runs it.
type offline struct {
	turn func(*visit)
	fuel uint64
	seed [32]byte
}

func (g *offline) Digest() string { return "m1" }

func (g *offline) Turn(ctx context.Context, t turn.Turn) turn.Result {
	g.seed = t.Seed
	v := &visit{ctx: ctx, t: t}
	if err := json.Unmarshal(t.Input, &v.in); err != nil {
		panic(err)
	}
	g.turn(v)
	if ctx.Err() != nil {
		return turn.Result{Exit: &turn.Exit{Kind: turn.ExitCancelled, Message: "stopped"}}
	}
	return turn.Result{Output: v.output, Fuel: g.fuel}
}

// A replay answers from the record alone, and names the first difference.
func TestReplay(t *testing.T) {
	t.Parallel()
	rec, seed := recordOf(t, workday)
	for name, c := range map[string]struct {
		turn func(*visit)
		fuel uint64
		want string
	}{
		"the same":     {workday, 100, ""},
		"fuel":         {workday, 101, "the turn used 101 units of fuel, recorded 100"},
		"output":       {func(v *visit) { workday(v); v.output = []byte(`{"notes":["dane"]}`) }, 100, `at byte 12 now "ane\"]}", recorded "one\"]}"`},
		"bad output":   {func(v *visit) { workday(v); v.output = []byte(`[]`) }, 100, "the turn ended with output, recorded ok"},
		"another call": {func(v *visit) { v.call(abi.OpClockNow, "{}") }, 100, "now call 1 clock.now"},
		"fewer calls":  {func(v *visit) { v.call(abi.OpRandom, "{}"); v.output = []byte(`{"notes":["done"]}`) }, 100, "the turn ended before entry 2 of its record, call 2 http.fetch"},
		"more calls":   {func(v *visit) { workday(v); v.call(abi.OpRandom, "{}") }, 100, "the turn goes on where its record ends: now call 5 random"},
	} {
		m := &offline{turn: c.turn, fuel: c.fuel}
		got, err := Replay(t.Context(), m, testRecipe, rec, seed, ReplayOptions{})
		if err != nil || c.want == "" && got.Difference != "" || !strings.Contains(got.Difference, c.want) || m.seed != seed {
			t.Errorf("%s: %q, %v; want %q", name, got.Difference, err, c.want)
		}
		if c.want == "" && (got.Ops != 4 || got.Fuel != 100) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A replay stops at a call and shows what was asked and told.
func TestReplayStopsAtACall(t *testing.T) {
	t.Parallel()
	rec, seed := recordOf(t, workday)
	for at, want := range map[string]string{
		"1": `{"value":"`, "2": "answer to one under ", "4": `{"id":"`, "5": "",
	} {
		got, err := Replay(t.Context(), &offline{turn: workday, fuel: 100}, testRecipe, rec, seed, ReplayOptions{StopAt: at})
		if err != nil || (got.StoppedAt == nil) != (want == "") {
			t.Fatalf("%s: %+v, %v", at, got, err)
		}
		if s := got.StoppedAt; s != nil && (s.Call != at || !strings.HasPrefix(string(s.Answer), want) || len(s.Request) == 0 || got.Difference != "") {
			t.Errorf("%s: %+v", at, s)
		}
	}
}

// A replay reports every call, with its request and its answer.
func TestReplayTellsOfEachCall(t *testing.T) {
	t.Parallel()
	rec, seed := recordOf(t, func(v *visit) { v.call(999, `{}`); workday(v) })
	again := func(v *visit) { v.call(999, `{}`); workday(v) }
	var got []string
	each := func(s ReplayedCall) {
		line := s.Call + " " + s.Op.String()
		if s.Err != nil {
			line += " " + s.Err.Code.String()
		} else if len(s.Answer) == 0 || len(s.Request) == 0 {
			line += " nothing"
		}
		got = append(got, line)
	}
	out, err := Replay(t.Context(), &offline{turn: again, fuel: 100}, testRecipe, rec, seed, ReplayOptions{OnCall: each})
	want := "1 op 999 UNSUPPORTED, 2 random, 3 http.fetch, 4 clock.now, 5 mail"
	if err != nil || out.Difference != "" || strings.Join(got, ", ") != want {
		t.Errorf("%s, %+v, %v; want %s", strings.Join(got, ", "), out, err, want)
	}
}

// Of a turn that was killed, what happened before is compared; of one from
// another version, nothing can be.
func TestReplayOfWhatDidNotEnd(t *testing.T) {
	t.Parallel()
	rec, seed := recordOf(t, workday)
	cut := rec
	cut.Entries, cut.End = rec.Entries[:2], nil
	got, err := Replay(t.Context(), &offline{turn: workday}, testRecipe, cut, seed, ReplayOptions{})
	if err != nil || got.Difference != "" {
		t.Errorf("unfinished: %+v, %v", got, err)
	}
	cut.End = &swarm.TurnEnd{Exit: "deadline", Usage: swarm.Usage{Fuel: 50}}
	if got, err = Replay(t.Context(), &offline{turn: workday}, testRecipe, cut, seed, ReplayOptions{}); err != nil || got.Difference != "" {
		t.Errorf("killed: %+v, %v", got, err)
	}
	other := func(v *visit) { v.call(abi.OpClockNow, "{}") }
	if got, err = Replay(t.Context(), &offline{turn: other}, testRecipe, cut, seed, ReplayOptions{}); err != nil || got.Difference == "" {
		t.Errorf("killed and different: %+v, %v", got, err)
	}
	header := *rec.Header
	header.Recipe = "image-0-meter-0-mips"
	cut.Header = &header
	if _, err = Replay(t.Context(), &offline{turn: workday}, testRecipe, cut, seed, ReplayOptions{}); err == nil || !strings.Contains(err.Error(), "image-0-meter-0-mips") {
		t.Errorf("another version: %v", err)
	}
}
