package uamp

import (
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// waiting are the attempts that wait for answers which come as envelopes of their own. No
// two realms have an id in common.
type waiting struct {
	mu       sync.Mutex
	answered map[envelope.ID]chan struct{} // closed by the answer
	// streams are the envelopes by the names that their partners have given to the streams, names
	// the other way round.
	streams map[state.Key]envelope.ID
	names   map[envelope.ID]state.Key
}

func newWaiting() *waiting {
	return &waiting{answered: map[envelope.ID]chan struct{}{}, streams: map[state.Key]envelope.ID{}, names: map[envelope.ID]state.Key{}}
}

// nameStream has an envelope whose answer is waited for found by the stream, too.
func (w *waiting) nameStream(id envelope.ID, c gateway.Caller, name string) {
	key := streamKey(c, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.answered[id]; waits && name != "" {
		w.dropName(id)
		w.streams[key], w.names[id] = id, key
	}
}

// dropName is for holders of the mutex.
func (w *waiting) dropName(id envelope.ID) {
	if key := w.names[id]; w.streams[key] == id {
		delete(w.streams, key)
	}
	delete(w.names, id)
}

// ofStream is the envelope whose answer a stream of a partner has, empty for none that waits.
func (w *waiting) ofStream(c gateway.Caller, name string) envelope.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.streams[streamKey(c, name)]
}

// begin waits for the answer to an envelope. end forgets it. The router makes one attempt
// at a time.
func (w *waiting) begin(id envelope.ID) (answered <-chan struct{}, end func()) {
	done := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered[id] = done
	return done, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.answered[id] == done {
			delete(w.answered, id)
			w.dropName(id)
		}
	}
}

// wake ends the wait for an answer.
func (w *waiting) wake(id envelope.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done, ok := w.answered[id]; ok {
		close(done)
		delete(w.answered, id)
		w.dropName(id)
	}
}
