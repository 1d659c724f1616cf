package gateway

import "context"

// ShownToken is the bearer token with which a connection to a partner was opened. A partner may
// refuse it only on the open connection. It is safe for concurrent use.
type ShownToken interface {
	// Confirm records that the partner takes the token.
	Confirm()
	// Reject forgets a token that the partner refuses, and reports whether another may be shown.
	Reject() bool
}

// tokenWatcher is the key of a watcher in a context.
type tokenWatcher struct{}

// WatchTokens returns a context whose requests to a partner pass the token that they show to
// shown, if the token can be replaced. A response does not confirm that token: the caller of
// WatchTokens does, or rejects it.
func WatchTokens(ctx context.Context, shown func(ShownToken)) context.Context {
	return context.WithValue(ctx, tokenWatcher{}, shown)
}

// TokenWatcher returns the function that gets the token of a request, nil for none.
func TokenWatcher(ctx context.Context) func(ShownToken) {
	shown, _ := ctx.Value(tokenWatcher{}).(func(ShownToken))
	return shown
}
