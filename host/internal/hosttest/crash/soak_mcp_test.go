package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpCaller calls the tool goal under an id of its own, and begins another session after an error.
func (s *soak) mcpCaller() *soakCaller {
	h := &cutHTTP{soakHTTP: s.http("/mcp", soakUserKey), limit: context.Background()}
	var session *mcp.ClientSession
	leave := func() {
		if session != nil {
			_ = session.Close()
			session = nil
		}
		h.CloseIdleConnections()
	}
	call := func(ctx context.Context, id, text string) (answer []byte, err error) {
		if session == nil {
			session, err = mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{
				Endpoint: h.url, HTTPClient: &http.Client{Transport: h}, DisableStandaloneSSE: true, MaxRetries: -1,
			}, nil)
			if err != nil {
				return nil, err
			}
		}
		got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "goal", Arguments: map[string]any{"message": text}, Meta: mcp.Meta{"skep/id": id}})
		if err != nil {
			return nil, err
		}
		answer, err = json.Marshal(got.Content)
		if err == nil && got.IsError {
			err = errors.New(string(answer))
		}
		return answer, err
	}
	return &soakCaller{name: "mcp", leave: leave, spoil: h.spoil("Accept", "application/json, text/event-stream"), prepare: func(id, text string) func(time.Duration) (string, error) {
		return func(limit time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(s.t.Context(), limit)
			defer cancel()
			h.cutAfter(ctx)
			answer, err := call(ctx, id, text)
			if err != nil {
				leave()
			}
			h.cutAfter(context.Background())
			return string(answer), err
		}
	}}
}

// cutHTTP makes no request after the end of a context, and ends with it those that are under way: a
// client that is cut off can call nothing off.
type cutHTTP struct {
	soakHTTP
	mu    sync.Mutex
	limit context.Context
}

func (h *cutHTTP) cutAfter(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit = ctx
}

// RoundTrip implements [http.RoundTripper]: it shows the key.
func (h *cutHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	limit := h.limit
	h.mu.Unlock()
	if limit.Err() != nil {
		return nil, limit.Err()
	}
	ctx, cut := context.WithCancel(r.Context())
	context.AfterFunc(limit, func() {
		if errors.Is(limit.Err(), context.DeadlineExceeded) {
			cut()
		}
	})
	r = r.Clone(ctx)
	r.Header.Set("Authorization", "Bearer "+h.key)
	return h.Transport.RoundTrip(r)
}
