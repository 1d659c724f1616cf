package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpCaller calls the tool goal under an id of its own, and begins another session after an error. By
// the protocol a call whose connection is cut is called off.
func (s *soak) mcpCaller() *soakCaller {
	h := s.http("/mcp", soakUserKey)
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
		switch {
		case err != nil || !got.IsError:
		case strings.Contains(string(answer), "The request was cancelled."):
			err = errCalledOff
		default:
			err = errors.New(string(answer))
		}
		return answer, err
	}
	return &soakCaller{name: "mcp", leave: leave, spoil: h.spoil("Accept", "application/json, text/event-stream"), prepare: func(id, text string) func(time.Duration) (string, error) {
		return func(limit time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(s.t.Context(), limit)
			defer cancel()
			answer, err := call(ctx, id, text)
			if err != nil {
				leave()
			}
			return string(answer), err
		}
	}}
}

// RoundTrip implements [http.RoundTripper]: it shows the key.
func (h soakHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+h.key)
	return h.Transport.RoundTrip(r)
}
