package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A waiting post returns no answer to a revoked caller, in each form of the post,
// before and after the next check of the token.
func TestRevokeEndsWaitingPosts(t *testing.T) {
	t.Parallel()
	body := fmt.Sprintf("%q", calls("gate", obj{"name": "go"}, "task_complete", obj{"finish_message": "secret"}))
	for name, q := range map[string]request{
		"message":    {path: "/message", body: `{"task_id":"t","body":` + body + `}`},
		"with log":   {path: "/message", body: `{"task_id":"t","show_events":true,"body":` + body + `}`},
		"patient":    {path: "/message", body: `{"task_id":"t","body":` + body + `}`, header: http.Header{"Prefer": {"respond-async, wait=600"}}},
		"interswarm": {path: "/interswarm/message", body: `{"task_id":"t","user_token":"u","targets":["boss"],"body":` + body + `}`},
		"responses":  {path: "/responses", body: `{"tools":[],"kwargs":{},"input":[{"role":"user","content":` + body + `}]}`},
	} {
		for _, ping := range []time.Duration{5 * time.Millisecond, time.Hour} {
			t.Run(fmt.Sprint(name, ping), func(t *testing.T) {
				t.Parallel()
				g := newTokenHost(t, func(h *testHost) { h.opt.Ping, h.opt.Debug = ping, true })
				_, m := g.make(adminToken, obj{"role": "user", "id": "carol"})
				q := q // shared with the other ping
				q.method, q.token = "POST", m.Token
				held := make(chan answer, 1)
				go func() { held <- g.do(q) }()
				eventually(t, "the post is taken", func() bool {
					a := g.do(request{path: "/skep/v1/tasks", token: m.Token})
					return strings.Contains(a.body, `"task_id"`)
				})
				g.do(request{method: "DELETE", path: "/skep/v1/tokens/" + m.ID, token: adminToken})
				if ping == time.Hour {
					g.script.open("go")
				}
				a := <-held
				if a.status != http.StatusUnauthorized || a.body != detail("the token is not valid any more") || a.header.Get("X-MAIL-Finish-Subject") != "" {
					t.Errorf("%d %s", a.status, a.body)
				}
				if heard := strings.Join(g.ears.recorded(), "\n"); !strings.Contains(heard, "refused|request|POST "+q.path+"|default|user:carol|the token is not valid any more") {
					t.Errorf("the audit heard %s", heard)
				}
			})
		}
	}
}
