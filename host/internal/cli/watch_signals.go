package cli

import (
	"context"
	"os"
)

// watchSignals returns a context that the first signal ends, with the cause
// errInterrupted, and a channel that the second one closes. The caller ends the
// watch, which waits for its goroutine.
func watchSignals(ctx context.Context, signals <-chan os.Signal) (soft context.Context, cut <-chan struct{}, stop func()) {
	soft, cancel := context.WithCancelCause(ctx)
	second, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-end:
			return
		}
		select {
		case <-signals:
			close(second)
		case <-end:
		}
	}()
	return soft, second, func() {
		close(end)
		<-ended
		cancel(nil)
	}
}
