package contract_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/gatewaytest/toy"
	"skep/host/internal/gateway/mcp"
)

// unreadBody is a body for which the host has no room.
type unreadBody struct{}

func (unreadBody) Read([]byte) (int, error) { return 0, errors.New("no room") }

// silentWriter fails the test when a handler answers.
type silentWriter struct {
	t    *testing.T
	name string
}

func (silentWriter) Header() http.Header { return http.Header{} }

func (w silentWriter) Write(p []byte) (int, error) {
	w.t.Errorf("%s writes %q", w.name, p)
	return len(p), nil
}

func (w silentWriter) WriteHeader(status int) { w.t.Errorf("%s answers with %d", w.name, status) }

// A gateway leaves the answer to the host when a body cannot be read: the host says
// whether it was late or broken, or that there is no room for it now and when to come
// again (G-057).
func TestUnreadBodiesAreTheHosts(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	const token = "a-token"
	rt.Admit(token, gatewaytest.User("acme", "ann"))
	rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "echo", Entrypoint: true}, gatewaytest.Echo)
	for path, g := range map[string]gateway.Gateway{
		"/a2a/hive/echo":   a2a.New(a2a.Options{Runtime: rt}),
		"/mcp":             mcp.New(rt, mcp.Options{}),
		"/acp/v1/messages": acp.New(acp.Options{Runtime: rt}),
		"/toy/v1":          toy.New(rt, toy.Options{MaxBody: 1000}),
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, io.NopCloser(unreadBody{}))
		r.Header.Set("Authorization", "Bearer "+token)
		gatewaytest.Listener(rt, g.Mounts()).ServeHTTP(silentWriter{t, path}, r)
	}
}
