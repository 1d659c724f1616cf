package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// byRole takes tokens of the form TENANT/ROLE/ID.
type byRole struct{}

func (byRole) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	part := strings.Split(token, "/")
	return auth.Principal{Tenant: part[0], Role: auth.Role(part[1]), ID: part[2]}, nil
}

// askingHost is a host of the tenants default and acme. In each, alice and the realm yard
// have a task that waits for people. want are all questions: instances by tenant.
func askingHost(t *testing.T, entries *[]audit.Entry) *testHost {
	h := newTestHost(t, func(h *testHost) {
		h.known = byRole{}
		h.def.Agents[0].Expose = []string{"toy"}
		acme := h.def
		acme.Tenant = "acme"
		h.also = []swarm.Definition{acme}
		h.opt.Audit = recordingAudit{entries}
	})
	for _, tenant := range []string{"default", "acme"} {
		h.do(request{method: "POST", path: "/message", token: tenant + "/user/alice", body: text(obj{"task_id": "t", "body": calls("ask", []string{"confirm"})})})
		h.askFromRealm(tenant)
	}
	return h
}

// recordingAudit keeps what is recorded; the calls of a test come one after the other.
type recordingAudit struct{ entries *[]audit.Entry }

func (a recordingAudit) Record(e audit.Entry) error {
	*a.entries = append(*a.entries, e)
	return nil
}
func (a recordingAudit) RecordRefusal(audit.Entry) {}

// askFromRealm has realm yard ask the boss of a tenant, who asks a person.
func (h *testHost) askFromRealm(tenant string) {
	h.t.Helper()
	got, err := h.rt.Receive(h.t.Context(), swarm.Incoming{
		Door: swarm.GatewayDoor + "toy", Principal: swarm.Principal{Tenant: tenant, Role: mail.RoleSwarm, ID: "yard"},
		Peer: "yard", Swarm: "hive", Wrapper: mail.Interswarm{
			MessageID: "m1", Timestamp: mail.FormatTime(time.Unix(1e9, 0)), SourceSwarm: "yard", TargetSwarm: "hive", Type: mail.Request, TaskOwner: "swarm:yard@yard", TaskContributors: []string{"swarm:yard@yard"},
			Payload: mail.Payload{
				TaskID: "t", ID: "9a1f0000-0000-4000-8000-000000000001", Sender: mail.Address{Type: mail.Agent, Name: "x@yard"}, SenderSwarm: "yard",
				Recipients: []mail.Address{{Type: mail.Agent, Name: "boss@hive"}}, RecipientSwarms: []string{"hive"}, Body: calls("ask", []string{"confirm", "price"}),
			},
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if s, err := h.rt.WaitExchange(h.t.Context(), got.Exchanges[0], nil); err != nil || len(s.Needs) != 2 {
		h.t.Fatalf("%+v, %v", s, err)
	}
}

// questionList reads all pages as "TENANT INSTANCE TASK CALL AGENT ACTION", with the
// arguments where they are shown.
func (h *testHost) questionList(token, query string) (list []string) {
	h.t.Helper()
	for next := ""; ; {
		a := h.do(request{path: "/skep/v1/questions?limit=1&" + query + "&after=" + next, token: token})
		var page struct {
			Questions []struct {
				Tenant, Instance, Agent, Action, Since string
				Task                                   string `json:"task_id"`
				Call                                   string `json:"call_id"`
				Arguments                              *string
			}
			Next *string
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != http.StatusOK {
			h.t.Fatalf("%s: %d %s %v", token, a.status, a.body, err)
		}
		for _, q := range page.Questions {
			line := fmt.Sprint(q.Tenant, " ", q.Instance, " ", q.Task, " ", q.Call, " ", q.Agent, " ", q.Action)
			if q.Arguments != nil {
				line += " " + *q.Arguments
			}
			if !timeForm.MatchString(q.Since) {
				h.t.Errorf("since %q", q.Since)
			}
			list = append(list, line)
		}
		if page.Next == nil {
			slices.Sort(list)
			return list
		}
		next = *page.Next
	}
}

// Each role sees the questions that it may see, and the arguments of those that it may
// answer; what it may not see, it may not answer either.
func TestQuestionsByRole(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := askingHost(t, &entries)
	alices := func(tenant, args string) string { return tenant + " user:alice t t1.c1 boss confirm" + args }
	realms := func(tenant string) []string {
		return []string{tenant + ` swarm:yard t t1.c1 boss confirm {"n":1}`, tenant + ` swarm:yard t t1.c2 boss price {"n":1}`}
	}
	const args = ` {"n":1}`
	for _, c := range []struct {
		token, query string
		want         []string
	}{
		{"default/user/alice", "", []string{alices("default", args)}},
		{"default/user/bob", "", nil},
		{"acme/user/alice", "", []string{alices("acme", args)}},
		{"default/admin/ada", "", append(realms("default"), alices("default", ""))},
		{"default/admin/ada", "tenant=default", append(realms("default"), alices("default", ""))},
		{"acme/admin/ann", "", append(realms("acme"), alices("acme", ""))},
		{"default/operator/op", "", slices.Concat(realms("acme"), []string{alices("acme", "")}, realms("default"), []string{alices("default", "")})},
		{"default/operator/op", "tenant=acme", append(realms("acme"), alices("acme", ""))},
	} {
		if got := h.questionList(c.token, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s %s sees %q, want %q", c.token, c.query, got, c.want)
		}
	}
	for _, token := range []string{"default/user/alice", "default/admin/ada"} {
		if a := h.do(request{path: "/skep/v1/questions?tenant=acme", token: token}); a.status != http.StatusUnauthorized {
			t.Errorf("%s asks for another tenant: %d %s", token, a.status, a.body)
		}
	}
	const in = http.StatusUnauthorized
	for _, c := range []struct {
		token string
		where obj
		want  int
	}{
		{"default/user/bob", obj{}, http.StatusNotFound},
		{"default/user/bob", obj{"instance": "user:alice"}, in},
		{"default/user/alice", obj{"instance": "swarm:yard"}, in},
		{"default/user/alice", obj{"tenant": "acme"}, in},
		{"default/admin/ada", obj{"instance": "user:alice"}, in},
		{"default/admin/ada", obj{"instance": "swarm:yard", "tenant": "acme"}, in},
		{"acme/admin/ann", obj{"instance": "swarm:yard", "tenant": "default"}, in},
		{"default/operator/op", obj{"instance": "user:alice", "tenant": "acme"}, in},
		{"default/operator/op", obj{"instance": "swarm:none", "tenant": "acme"}, http.StatusNotFound},
		{"default/operator/op", obj{"instance": "swarm:yard", "tenant": "none"}, http.StatusNotFound},
		{"default/yard/x", obj{"instance": "swarm:yard"}, in},
		{"default/user/alice", obj{}, http.StatusOK},
		{"default/user/alice", obj{}, http.StatusConflict},
		{"default/admin/ada", obj{"instance": "swarm:yard"}, http.StatusOK},
		{"default/operator/op", obj{"instance": "swarm:yard", "tenant": "default"}, http.StatusConflict},
		{"default/operator/op", obj{"instance": "swarm:yard", "tenant": "acme"}, http.StatusOK},
	} {
		body := obj{"task_id": "t", "call_id": "t1.c1", "content": "yes"}
		for name, value := range c.where {
			body[name] = value
		}
		if a := h.do(request{method: "POST", path: "/skep/v1/questions/answer", token: c.token, body: text(body)}); a.status != c.want {
			t.Errorf("%s answers at %v: %d %s, want %d", c.token, c.where, a.status, a.body, c.want)
		}
	}
	var done []string
	for _, e := range entries {
		done = append(done, e.Principal+" "+e.Act+" "+e.Target+" "+string(e.Outcome))
	}
	if want := []string{
		"user:alice question.answer default/user:alice/t/t1.c1 done",
		"admin:ada question.answer default/swarm:yard/t/t1.c1 done",
		"operator:op question.answer acme/swarm:yard/t/t1.c1 done",
	}; !slices.Equal(done, want) {
		t.Errorf("audit log %q, want %q", done, want)
	}
	eventually(t, "alice's task goes on", func() bool { return len(h.questionList("default/user/alice", "")) == 0 })
	if got := h.questionList("default/admin/ada", ""); !slices.Equal(got, realms("default")[1:]) {
		t.Errorf("one answer of two: %q", got)
	}
}
