package client

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// Questions come page by page, and an answer names the whole place of its question.
func TestQuestions(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r.Method + " " + r.URL.RequestURI() + " " + string(body)
		switch {
		case r.Method == http.MethodGet:
			reply(w, 200, `{"questions":[{"tenant":"default","instance":"swarm:acme","task_id":"t","call_id":"t1.c1","agent":"boss","action":"confirm","since":"2026-11-20T15:52:40.084847+00:00","arguments":"{}"},
				{"tenant":"default","instance":"user:alice","task_id":"u","call_id":"t1.c1","agent":"boss","action":"confirm","since":"2026-11-20T15:52:40.084847+00:00","arguments":null}],"next":"1.2"}`)
		case string(body) == `{"call_id":"t1.c1","content":"yes","instance":"swarm:acme","task_id":"t","tenant":"default"}`:
			reply(w, 200, `{"task_id":"t","call_id":"t1.c1","status":"answered"}`)
		default:
			reply(w, 409, `{"detail":"it waits for no answer"}`)
		}
	})
	list, next, err := c.Questions(t.Context(), "default", "1.1")
	if err != nil || next != "1.2" || len(list) != 2 || list[0].Arguments == nil || *list[0].Arguments != "{}" || list[1].Arguments != nil || list[0].Since.IsZero() {
		t.Fatalf("Questions() = %+v, %q, %v", list, next, err)
	}
	if err := c.Answer(t.Context(), list[0], "yes"); err != nil {
		t.Error(err)
	}
	var refused *Error
	if err := c.Answer(t.Context(), list[1], "yes"); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("an answer to another's question: %v", err)
	}
	if got := <-seen; got != "GET /skep/v1/questions?after=1.1&tenant=default " {
		t.Errorf("asked %q", got)
	}
}
