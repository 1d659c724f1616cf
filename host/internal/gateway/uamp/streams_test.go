package uamp_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"skep/host/internal/gateway/uamp/envelope"
)

// TestStreamWithoutName (D-U11, D-U13): the stream of an envelope without a stream_id is no other
// envelope's, before it has ended and after, whichever comes first.
func TestStreamWithoutName(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	e, other, early := newAsk("slow", "x"), newAsk("slow", "y"), newAsk("slow", "z")
	early.Stream = "str-" + string(e.ID)
	h.refused(t, "a stream that is to come", h.send(t, early), envelope.MissingSeq)
	at := h.take(t, e).location
	other.Stream = "str-" + string(e.ID)
	h.refused(t, "a live stream", h.send(t, other), envelope.MissingSeq)
	close(h.release)
	h.read(t, at)
	h.refused(t, "a stream that has ended", h.send(t, other), envelope.MissingSeq)
	other.Stream = "str-" + string(other.ID)
	h.take(t, other)
}

// TestStreamNameAgain (D-U11, D-U13): a name whose stream has ended may be another envelope's, and a
// repeat of the one before does not take it back.
func TestStreamNameAgain(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	e, later := newAsk("calc", "1+1"), newAsk("calc", "2+2")
	e.Stream, later.Stream = "mine", "mine"
	first := signedBy(t, h.own, e)
	at := h.posted(t, first)
	one := h.read(t, at)
	h.take(t, later)
	two := h.read(t, at)
	h.posted(t, first)
	if again := h.read(t, at); !slices.Equal(again, two) || slices.Equal(again, one) {
		t.Errorf("the stream has %q, had %q, and %q for the envelope before", again, two, one)
	}
}

// posted takes a signed envelope, and returns where its stream is.
func (h *hive) posted(t *testing.T, text string) string {
	t.Helper()
	r := h.post(t, "lab-token", text)
	if r.status != http.StatusAccepted {
		t.Fatalf("%d %s", r.status, r.text)
	}
	return r.location
}

// TestStreamOfTwoAtOnce (D-U11, D-U13): of envelopes that come at once with one stream_id one is taken.
func TestStreamOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	defer close(h.release)
	for range 20 {
		name := "s-" + string(newAsk("slow", "").ID)
		var sending sync.WaitGroup
		status := make(chan int, 4)
		for range cap(status) {
			e := newAsk("slow", "x")
			e.Stream = name
			sending.Go(func() { status <- h.send(t, e).status })
		}
		sending.Wait()
		close(status)
		taken := 0
		for s := range status {
			if s == http.StatusAccepted {
				taken++
			}
		}
		if taken != 1 {
			t.Fatalf("%d are taken", taken)
		}
	}
}
