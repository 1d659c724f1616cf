package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// emit are the steps of a script that shows pieces.
func emit(chunks ...string) (steps []hosttest.Step) {
	for _, c := range chunks {
		steps = append(steps, hosttest.Step{"emit", hosttest.Args{"chunk": c}})
	}
	return steps
}

// script joins steps.
func script(lists ...[]hosttest.Step) string {
	var all []hosttest.Step
	for _, l := range lists {
		all = append(all, l...)
	}
	return hosttest.Script(all...)
}

// steps is a list of some steps.
func steps(list ...hosttest.Step) []hosttest.Step { return list }

// progress is a step of a script that shows how far it is.
var progress = steps(hosttest.Step{"emit", hosttest.Args{"progress": map[string]any{"text": "half way", "fraction": 0.5}}})

// reading is what a stream has shown.
type reading struct {
	chunks   []string
	progress []string
}

// add takes a piece of a stream that was opened from a chunk on: chunks come in order.
func (r *reading) add(t *testing.T, from int64, p Piece) {
	if p == (Piece{}) {
		return // the stream is open
	}
	if p.Progress != "" {
		r.progress = append(r.progress, p.Progress)
		return
	}
	if want := from + int64(len(r.chunks)); p.N != want {
		t.Errorf("chunk %d comes in place of %d", p.N, want)
	}
	r.chunks = append(r.chunks, p.Chunk)
}

// read reads a stream to its end, which must have a text.
func read(t *testing.T, c Client, m Message, from int64, end string) reading {
	t.Helper()
	var r reading
	got, err := c.Read(t.Context(), m, from, func(p Piece) { r.add(t, from, p) })
	wantText(t, got, err, end)
	return r
}

// background sends a message and wants it accepted, though nobody waits for its answer.
func (s *suite) background(t *testing.T, c Client, m Message, key string) {
	t.Helper()
	later(t, c, m)
	s.web.held(t, key)
}

// pieces: progress and pieces are shown while the agent works, in order, and number k has
// the same bytes on every read.
func (s *suite) pieces(t *testing.T) {
	s.roles(t, "20", func(t *testing.T, c caller) {
		cl, key := s.dial(t, c.token), "pieces-"+c.role
		m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: script(
			steps(s.web.hold(key+"-1")), progress, emit("one ", "two "), steps(s.web.hold(key+"-2")), emit("three"), steps(finish("done")))}
		s.background(t, cl, m, key+"-1")
		shown := make(chan struct{})
		live := make(chan reading, 1)
		go func() {
			var r reading
			_, err := cl.Read(t.Context(), m, 0, func(p Piece) {
				if r.add(t, 0, p); p == (Piece{}) {
					s.web.free(key + "-1")
				}
				if len(r.chunks) == 2 {
					close(shown)
				}
			})
			if err != nil {
				t.Error(err)
			}
			live <- r
		}()
		until(t, "the pieces of a turn that runs are shown", shown)
		until(t, "they are shown to a reader that comes later", s.lateReader(t, cl, m, 2))
		s.web.free(key + "-2")
		want, got := "one |two |three", <-live
		if text := strings.Join(got.chunks, "|"); text != want {
			t.Errorf("while it works %q, want %q", text, want)
		}
		if len(got.progress) != 1 || got.progress[0] != "half way" {
			t.Errorf("while it works the progress %q", got.progress)
		}
		for range 2 {
			if got := strings.Join(read(t, cl, m, 0, "done").chunks, "|"); got != want {
				t.Errorf("afterwards %q, want %q", got, want)
			}
		}
		if got := strings.Join(read(t, cl, m, 2, "done").chunks, "|"); got != "three" {
			t.Errorf("from 2 on %q", got)
		}
	})
}

// lateReader reads a stream from its start, and reports when so many chunks have come.
func (s *suite) lateReader(t *testing.T, cl Client, m Message, chunks int) <-chan struct{} {
	t.Helper()
	come, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		var r reading
		_, err := cl.Read(t.Context(), m, 0, func(p Piece) {
			if r.add(t, 0, p); p.Chunk != "" && len(r.chunks) == chunks {
				close(come)
			}
		})
		if err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}()
	return come
}

// The size of what a reader does not take while it stands still: more events than the host
// keeps for a reader.
const (
	manyChunks = 700
	chunkBytes = 1 << 10
)

// stoppedReader: a reader that takes nothing while the agent works to its end has
// everything when it goes on. No time passes in the way of its pieces: the log has them.
func (s *suite) stoppedReader(t *testing.T) {
	cl, key := s.dial(t, s.token()), "stopped"
	s.web.body("/page", strings.Repeat("x", chunkBytes))
	var list []string
	for n := range manyChunks {
		list = append(list, fmt.Sprintf("{{0}} %d", n))
	}
	m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"),
		Text: script(steps(s.web.get("/page"), s.web.hold(key)), emit("first"), emit(list...), steps(finish("done")))}
	s.background(t, cl, m, key)
	var r reading
	got, err := cl.Read(t.Context(), m, 0, func(p Piece) {
		if r.add(t, 0, p); p == (Piece{}) {
			s.web.free(key)
		}
		if len(r.chunks) == 1 {
			stopReading(t, cl, m)
		}
	})
	wantText(t, got, err, "done")
	if len(r.chunks) != manyChunks+1 {
		t.Fatalf("%d chunks, want %d", len(r.chunks), manyChunks+1)
	}
	for n, c := range r.chunks[1:] {
		if want := fmt.Sprintf("%s %d", strings.Repeat("x", chunkBytes), n); c != want {
			t.Fatalf("chunk %d has %d bytes", n+1, len(c))
		}
	}
}

// stopReading returns when a message is done, or in time before the host cuts a reader that takes nothing for 30 s.
func stopReading(t *testing.T, cl Client, m Message) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if now, err := cl.Look(t.Context(), m); err != nil || now.Status == Done {
			return
		}
	}
}

// revokedToken: a call and a stream end with the token that opened them. The agent works
// on.
func (s *suite) revokedToken(t *testing.T) {
	s.roles(t, "14", func(t *testing.T, c caller) {
		wish := client.TokenWish{Role: "user", ID: "carol"}
		if c.role == "realm" {
			wish = client.TokenWish{Role: "agent", ID: "depot", Peer: "depot"}
		}
		admin := s.as(t, operatorToken)
		made, err := admin.CreateToken(t.Context(), wish)
		if err != nil {
			t.Fatal(err)
		}
		cl, key := s.dial(t, made.Text), "revoked-"+c.role
		m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(s.web.hold(key), finish("done"))}
		waits := later(t, cl, m)
		s.web.held(t, key)
		var stream <-chan error
		if _, none := s.p.Without["14/stream"]; !none {
			stream = s.openStream(t, cl, m)
		}
		if _, err := admin.RevokeToken(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "the call of a revoked token ends", waits); got.err == nil && got.Status == Done {
			t.Errorf("the call has %+v", got.State)
		}
		if stream != nil && receive(t, "the stream of a revoked token ends", stream) == nil {
			t.Error("the stream ends as if it were done")
		}
		_, err = cl.Look(t.Context(), m)
		wantRefused(t, err, NoCredential)
		select {
		case <-s.web.channel(s.web.over, "/hold/"+key):
			t.Error("the agent was called off")
		default:
		}
		s.web.free(key)
	})
	t.Run("stream", func(t *testing.T) { s.part(t, "14/stream", func() {}) })
}

// openStream reads a stream in the background, and returns when the host has opened it.
func (s *suite) openStream(t *testing.T, cl Client, m Message) <-chan error {
	t.Helper()
	opened, over := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := cl.Read(t.Context(), m, 0, func(p Piece) {
			if p == (Piece{}) {
				close(opened)
			}
		})
		over <- err
	}()
	until(t, "the stream is open", opened)
	return over
}

// body sets what the server answers at a path.
func (w *web) body(path, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies[path] = text
}

func (w *web) write(rw http.ResponseWriter, path string) {
	w.mu.Lock()
	text, set := w.bodies[path]
	w.mu.Unlock()
	if !set {
		text = "ok"
	}
	_, _ = fmt.Fprint(rw, text)
}
