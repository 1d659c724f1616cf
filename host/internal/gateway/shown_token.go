package gateway

import "context"

// ShownToken is the bearer token that a connection to a partner was opened with, for who learns
// on the connection whether the partner takes it. It is safe for concurrent use.
type ShownToken interface {
	// Confirm records that the partner takes the token.
	Confirm()
	// Reject forgets a token that the partner refuses, and reports whether another may be shown.
	Reject() bool
}

// tokenWatcher is the key of a watcher in a context.
type tokenWatcher struct{}

// WatchTokens returns a context whose requests to a partner hand over the token that they show,
// if it can be replaced. Their responses then confirm none: who watches does.
func WatchTokens(ctx context.Context, shown func(ShownToken)) context.Context {
	return context.WithValue(ctx, tokenWatcher{}, shown)
}

// TokenWatcher is what gets the token of a request, nil for none.
func TokenWatcher(ctx context.Context) func(ShownToken) {
	shown, _ := ctx.Value(tokenWatcher{}).(func(ShownToken))
	return shown
}
