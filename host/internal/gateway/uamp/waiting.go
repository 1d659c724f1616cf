package uamp

import (
	"sync"

	"skep/host/internal/gateway/uamp/envelope"
)

// waiting are the attempts that wait for answers which come as envelopes of their own. No
// two realms have an id in common.
type waiting struct {
	mu       sync.Mutex
	answered map[envelope.ID]chan struct{} // closed by the answer
}

func newWaiting() *waiting { return &waiting{answered: map[envelope.ID]chan struct{}{}} }

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
	}
}
