package contract

import (
	"context"
	"slices"
	"sync"
)

// foreign is the agent of depot: it answers each text as a case wants, and others with
// "echo: " and the text.
type foreign struct {
	mu    sync.Mutex
	by    map[string]Handler
	heard []Message
}

func newForeign() *foreign { return &foreign{by: map[string]Handler{}} }

// on sets the handler of a text.
func (f *foreign) on(text string, h Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[text] = h
}

// got are the messages with a text, in order.
func (f *foreign) got(text string) (list []Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.heard {
		if m.Text == text {
			list = append(list, m)
		}
	}
	return slices.Clone(list)
}

func (f *foreign) handle(ctx context.Context, m Message, show func(Piece)) (State, error) {
	f.mu.Lock()
	f.heard = append(f.heard, m)
	h := f.by[m.Text]
	f.mu.Unlock()
	if h == nil {
		return State{Status: Done, Text: "echo: " + m.Text}, nil
	}
	return h(ctx, m, show)
}
