package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

// TestChangesOnTheWire: what is sent to the endpoints that only change something
// between swarms or for admins.
func TestChangesOnTheWire(t *testing.T) {
	t.Parallel()
	var asked []string
	c := fakeHost(t, Options{Token: "mine"}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.String()+" "+string(body))
		if r.Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s carries a key that its host does not know", r.URL)
		}
		reply(w, 200, `{"status":"degraded","swarm_name":"hive","auth_token_ref":"${T}","response":`+encoded(wrapper())+`,"events":null}`)
	})
	ctx := t.Context()
	ref, err1 := c.RegisterSwarm(ctx, Registration{Name: "depot", BaseURL: "https://depot.example"})
	_, err2 := c.RegisterSwarm(ctx, Registration{Name: "depot", BaseURL: "https://depot.example", Token: "t", Lasting: true, Metadata: json.RawMessage(`{"a":1}`)})
	name, err3 := c.LoadSwarm(ctx, `{"swarm":{}}`)
	dumped, err4 := c.DumpSwarm(ctx)
	h, err5 := c.SetHealth(ctx, "degraded")
	d, err6 := c.PostInterswarm(ctx, Outbound{Targets: []string{"clerk@depot"}, Body: "b"})
	_, err7 := c.PostInterswarm(ctx, Outbound{Targets: []string{"a", "b"}, Body: "b", Subject: "s", Type: mail.Broadcast, Task: "t", UserToken: "u", Events: true})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		t.Fatal(err)
	}
	if ref != "${T}" || name != "hive" || dumped != "hive" || h.Status != "degraded" || d.Response.Payload.Body != "b" {
		t.Errorf("answers %q, %q, %q, %+v, %+v", ref, name, dumped, h, d)
	}
	want := []string{
		`POST /swarms {"name":"depot","base_url":"https://depot.example","volatile":true}`,
		`POST /swarms {"name":"depot","base_url":"https://depot.example","auth_token":"t","metadata":{"a":1},"volatile":false}`,
		`POST /swarms/load {"json":"{\"swarm\":{}}"}`,
		`GET /swarms/dump `,
		`POST /health {"status":"degraded"}`,
		`POST /interswarm/message {"targets":["clerk@depot"],"body":"b","user_token":"mine"}`,
		`POST /interswarm/message {"targets":["a","b"],"body":"b","subject":"s","msg_type":"broadcast","task_id":"t","user_token":"u","stream":true}`,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHandOver(t *testing.T) {
	t.Parallel()
	var asked []string
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := json.Marshal(decodeBody(t, r)["message"])
		got, err := mail.ParseInterswarm(raw)
		asked = append(asked, fmt.Sprint(r.Method, " ", r.URL, " ", got.TargetSwarm, " ", err))
		reply(w, 200, `{"swarm":"hive","task_id":"t","status":"success","local_runner":"swarm:depot@hive"}`)
	})
	there, err := c.Forward(t.Context(), wrapper())
	back, err2 := c.Back(t.Context(), wrapper())
	if want := (Taken{"hive", "t", "swarm:depot@hive"}); err != nil || err2 != nil || there != want || back != want {
		t.Errorf("%+v, %v and %+v, %v; want %+v", there, err, back, err2, want)
	}
	if diff := cmp.Diff([]string{"POST /interswarm/forward hive <nil>", "POST /interswarm/back hive <nil>"}, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := c.Forward(t.Context(), mail.Interswarm{}); err == nil || len(asked) != 2 {
		t.Errorf("a wrapper without anything: %v after %d calls", err, len(asked))
	}
}
