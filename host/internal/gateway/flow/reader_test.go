package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/flow"
	"skep/host/internal/swarm"
)

// emission is one call of emit: a chunk, or progress.
type emission struct {
	chunk bool
	text  string
}

// The rows of the exchange that is read, and of another one of the same agent.
const askedRow, otherRow = 7, 9

// turn is a turn of an agent as the log will have it. Without an exchange its chunks are
// for all readers.
type turn struct {
	agent     string
	number    int64
	exchange  int64
	emissions []emission
}

// newTask makes the turns of a task. The last event of its log is the answer.
func newTask(r *rand.Rand) (turns []turn) {
	for n := range 1 + r.IntN(6) {
		t := turn{agent: []string{"asked", "asked", "other"}[r.IntN(3)], number: int64(n + 1), exchange: []int64{0, askedRow, askedRow, otherRow}[r.IntN(4)]}
		for range r.IntN(8) {
			t.emissions = append(t.emissions, emission{r.IntN(3) > 0, fmt.Sprintf("%.*s", r.IntN(7), fmt.Sprint(r.Uint32()))})
		}
		turns = append(turns, t)
	}
	return turns
}

func chunksOf(turns []turn, agent string) (list []string) {
	for _, t := range turns {
		for _, e := range t.emissions {
			if e.chunk && t.agent == agent && t.exchange != otherRow {
				list = append(list, e.text)
			}
		}
	}
	return list
}

func (t turn) volatile(i int) swarm.Event {
	e := t.emissions[i]
	name := "agent_progress"
	if e.chunk {
		name = "agent_chunk"
	}
	extra, _ := json.Marshal(map[string]any{"caller": t.agent, "turn": t.number, "n": i + 1, "text": e.text, "exchange": t.exchange})
	return swarm.Event{Name: name, Extra: extra}
}

func (t turn) output(seq int64) swarm.Event {
	return swarm.Event{Seq: seq, Name: "agent_output", Extra: t.begin(len(t.emissions))}
}

// running is what a reader gets who comes after some emissions.
func (t turn) running(emitted int) swarm.Event {
	return swarm.Event{Name: "agent_emitted", Extra: t.begin(emitted)}
}

// begin is the data of an event with the first emissions.
func (t turn) begin(emitted int) json.RawMessage {
	text, cuts, reports := "", []int{}, []any{}
	for _, e := range t.emissions[:emitted] {
		if e.chunk {
			text, cuts = text+e.text, append(cuts, len(e.text))
		} else {
			reports = append(reports, map[string]any{"at": len(cuts), "text": e.text})
		}
	}
	extra, _ := json.Marshal(map[string]any{"caller": t.agent, "turn": t.number, "n": emitted, "text": text, "cuts": cuts, "reports": reports, "exchange": t.exchange})
	return extra
}

// connection is one connection of a reader: it was opened when some turns were in the log
// and one was half done, it misses emissions as a slow reader does, and it may break off.
type connection struct {
	events []swarm.Event
	batch  *rand.Rand
}

func (c *connection) Next(context.Context) ([]swarm.Event, error) {
	if len(c.events) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	n := 1 + c.batch.IntN(len(c.events))
	page := c.events[:n]
	c.events = c.events[n:]
	return page, nil
}

func (*connection) Close() {}

// connect makes the events that a reader sees who connects while the turn at is running,
// after some of its emissions. A crash runs that turn again.
func connect(r *rand.Rand, turns []turn, at int, whole bool) *connection {
	c := &connection{batch: r}
	for i, t := range turns {
		emitted := t.emissions
		first := 0
		if i == at {
			first = r.IntN(len(emitted) + 1)
			if first > 0 && r.IntN(4) > 0 {
				c.events = append(c.events, t.running(first))
			}
		}
		for again := range 1 + r.IntN(2) {
			if i < at {
				break
			}
			if again > 0 {
				first = 0
			}
			for k := first; k < len(emitted); k++ {
				if r.IntN(6) > 0 {
					c.events = append(c.events, t.volatile(k))
				}
			}
		}
		if len(emitted) > 0 {
			c.events = append(c.events, t.output(int64(i+1)))
		}
	}
	c.events = append(c.events, swarm.Event{Seq: int64(len(turns) + 1), Name: "task_complete"})
	if !whole {
		c.events = c.events[:r.IntN(len(c.events))]
	}
	return c
}

type answers struct{}

func (answers) PieceOf(_ context.Context, e swarm.Event) (gateway.Piece, bool, error) {
	return gateway.Piece{Kind: gateway.End, Answer: &gateway.Answer{Body: "done", Cursor: e.Seq}}, e.Name == "task_complete", nil
}

// TestChunksAreTheSameOnEveryRead: chunk k is the same however a reader
// connects, loses emissions and sees turns run again. `make soak` has 10,000 schedules.
func TestChunksAreTheSameOnEveryRead(t *testing.T) {
	schedules := uint64(2000)
	if os.Getenv("SKEP_SOAK") != "" {
		schedules = 10_000
	}
	for seed := range schedules {
		r := rand.New(rand.NewPCG(seed, 0))
		turns := newTask(r)
		want := chunksOf(turns, "asked")
		var got []string
		for connections := 0; ; connections++ {
			c := connect(r, turns, r.IntN(len(turns)), connections > 3 || r.IntN(3) == 0)
			reader := flow.Open(c, answers{}, "asked", askedRow, int64(len(got)))
			end, err := readAll(t, reader, &got)
			if end {
				break
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: read %q, the log has %q", seed, got, want)
		}
	}
}

// TestWholeIsTheSameOnEveryRead (U-051, U-063): chunks and progress have one order for a reader of
// the whole, however it connects, loses emissions and sees turns run again.
func TestWholeIsTheSameOnEveryRead(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		turns := newTask(r)
		var want []string
		for _, turn := range turns {
			for _, e := range turn.emissions {
				if turn.agent == "asked" && turn.exchange != otherRow {
					want = append(want, fmt.Sprint(e.chunk, e.text))
				}
			}
		}
		for connections := 0; ; connections++ {
			var got []string
			reader := flow.OpenWhole(connect(r, turns, r.IntN(len(turns)), connections > 3), answers{}, "asked", askedRow)
			for {
				p, err := reader.Next(t.Context())
				if err != nil || p.Kind == gateway.End {
					break
				}
				got = append(got, fmt.Sprint(p.Kind == gateway.Chunk, p.Text))
			}
			if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || connections > 3 && len(got) < len(want) {
				t.Fatalf("seed %d: read %q, the log has %q", seed, got, want)
			}
			if connections > 3 {
				break
			}
		}
	}
}

// TestLateReader: who comes while a turn runs gets what it has emitted so far, and each later
// chunk as it comes. The output brings nothing again.
func TestLateReader(t *testing.T) {
	asked := turn{"asked", 1, askedRow, []emission{{true, "a"}, {false, "half"}, {true, "b"}, {true, "c"}}}
	other := turn{"other", 2, 0, []emission{{true, "x"}}}
	feed := &connection{events: []swarm.Event{asked.running(3), other.running(1), asked.volatile(3)}, batch: rand.New(rand.NewPCG(1, 1))}
	r := flow.Open(feed, answers{}, "asked", askedRow, 1)
	for n, want := range []string{"b", "c"} {
		if p, err := r.Next(t.Context()); err != nil || p.Kind != gateway.Chunk || p.Text != want || p.N != int64(n+1) {
			t.Errorf("%+v, %v, want %s", p, err, want)
		}
	}
	feed.events = []swarm.Event{asked.output(1), {Seq: 2, Name: "task_complete"}}
	if p, err := r.Next(t.Context()); err != nil || p.Kind != gateway.End || p.N != 3 {
		t.Errorf("after the output: %+v, %v", p, err)
	}
}

// readAll appends the chunks of one connection and reports whether it ended with End.
func readAll(t *testing.T, r *flow.Reader, got *[]string) (end bool, err error) {
	defer r.Close()
	for {
		p, err := r.Next(t.Context())
		if err != nil {
			return end, err
		}
		switch p.Kind {
		case gateway.Chunk:
			if p.N != int64(len(*got)) {
				t.Fatalf("chunk %d came as number %d", len(*got), p.N)
			}
			*got = append(*got, p.Text)
		case gateway.End:
			if _, err := r.Next(t.Context()); err != io.EOF {
				t.Fatalf("after the end: %v", err)
			}
			return true, nil
		}
	}
}

func TestTurnThatDoesNotRepeatItselfEndsTheStream(t *testing.T) {
	first := turn{"asked", 1, askedRow, []emission{{true, "a"}, {true, "b"}}}
	other := turn{"asked", 1, askedRow, []emission{{true, "a"}, {true, "c"}}}
	shorter := turn{"asked", 1, askedRow, []emission{{true, "a"}}}
	for name, c := range map[string]struct {
		events []swarm.Event
		want   error
	}{
		"other bytes when it runs again": {[]swarm.Event{first.volatile(0), first.volatile(1), other.volatile(0), other.volatile(1)}, gateway.ErrStreamLost},
		"other bytes in the log":         {[]swarm.Event{first.volatile(0), first.volatile(1), other.output(1)}, gateway.ErrStreamLost},
		"fewer in the log":               {[]swarm.Event{first.volatile(0), first.volatile(1), shorter.output(1)}, gateway.ErrStreamLost},
		"not shown, so not missed":       {[]swarm.Event{first.volatile(0), other.output(1)}, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			r := flow.Open(&connection{events: c.events, batch: rand.New(rand.NewPCG(1, 1))}, answers{}, "asked", askedRow, 0)
			var got []string
			if _, err := readAll(t, r, &got); !errors.Is(err, c.want) {
				t.Fatalf("read %q, then %v; want %v", got, err, c.want)
			}
			if _, err := r.Next(t.Context()); !errors.Is(err, c.want) {
				t.Fatalf("the next read: %v; want %v", err, c.want)
			}
		})
	}
}

func TestMalformedLogIsAnError(t *testing.T) {
	for _, extra := range []string{
		`{"caller":"asked","turn":1,"text":"ab","cuts":[3]}`,
		`{"caller":"asked","turn":1,"text":"ab","cuts":[-1,3]}`,
		`{"caller":"asked","turn":1,"text":"ab","cuts":[1]}`,
		`nonsense`,
	} {
		feed := &connection{events: []swarm.Event{{Seq: 1, Name: "agent_output", Extra: json.RawMessage(extra)}}, batch: rand.New(rand.NewPCG(1, 1))}
		if p, err := flow.Open(feed, answers{}, "asked", askedRow, 0).Next(t.Context()); err == nil {
			t.Errorf("%s: read %+v", extra, p)
		}
	}
}

// TestLogWithoutCutsIsOneChunk: an older host has logged no cuts.
func TestLogWithoutCutsIsOneChunk(t *testing.T) {
	feed := &connection{events: []swarm.Event{
		{Seq: 1, Name: "agent_output", Extra: json.RawMessage(`{"caller":"asked","turn":1,"text":"ab"}`)},
		{Seq: 2, Name: "agent_output", Extra: json.RawMessage(`{"caller":"asked","turn":2,"text":""}`)},
		{Seq: 3, Name: "task_complete"},
	}, batch: rand.New(rand.NewPCG(1, 1))}
	var got []string
	if end, err := readAll(t, flow.Open(feed, answers{}, "asked", askedRow, 0), &got); !end || !slices.Equal(got, []string{"ab"}) {
		t.Fatalf("read %q, end %v, %v", got, end, err)
	}
}
