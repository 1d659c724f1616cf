package definition

import "context"

// ctxMutex is a mutex whose waits end with a context: a host that is fenced ends its work while another caller holds
// it over a write.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// Lock returns an error, without the mutex, once ctx has ended.
func (m ctxMutex) Lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m ctxMutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

func (m ctxMutex) Unlock() { <-m }
