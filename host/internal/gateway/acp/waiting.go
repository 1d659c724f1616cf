package acp

import (
	"sync"

	"skep/host/internal/gateway/state"
)

// waiting are the attempts that wait for answers which come by messages of their own.
type waiting struct {
	mu sync.Mutex
	// answered are closed by the answers, by the thread and the id of the question.
	answered map[waitKey]chan struct{}
}

type waitKey struct {
	thread state.Key
	id     string
}

func newWaiting() *waiting { return &waiting{answered: map[waitKey]chan struct{}{}} }

// begin waits for the answer to a question. end forgets it. The router makes one attempt
// at a time.
func (w *waiting) begin(thread state.Key, id string) (answered <-chan struct{}, end func()) {
	key, done := waitKey{thread, id}, make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered[key] = done
	return done, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.answered[key] == done {
			delete(w.answered, key)
		}
	}
}

// wake ends the wait for an answer.
func (w *waiting) wake(thread state.Key, id string) {
	key := waitKey{thread, id}
	w.mu.Lock()
	defer w.mu.Unlock()
	if done, ok := w.answered[key]; ok {
		close(done)
		delete(w.answered, key)
	}
}
