package acp

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"skep/host/internal/gateway/mailbox"
)

// eventsPath is where the messages of a mailbox come as server-sent events.
const eventsPath = "/acp/v1/events"

// eventsPing is the time between two comments on a stream that waits.
const eventsPing = 15 * time.Second

// serveEvents serves the messages that wait for one agent of a realm as events. The
// stream ends after some: the next one's Last-Event-ID is what its reader has read past
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#the-last-event-id-header).
func (g *Gateway) serveEvents(w http.ResponseWriter, r *http.Request) {
	c, receiver, ok := g.mailboxOf(w, r)
	if !ok {
		return
	}
	after, err := mailbox.ParseCursor(receiver, cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	if err != nil {
		http.Error(w, fmt.Sprintf("Last-Event-ID must be the id of an event before for %.200q", receiver), http.StatusBadRequest)
		return
	}
	ping := time.NewTicker(eventsPing)
	defer ping.Stop()
	out, begun := http.NewResponseController(w), false
	for {
		list, changed, err := g.mailbox.Read(r.Context(), c, receiver, after)
		if err != nil && !begun {
			f := g.faultOf(err)
			http.Error(w, f.text, f.httpStatus())
			return
		}
		if err != nil {
			return // the reader opens another stream
		}
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = fmt.Fprint(w, "retry: 100\n\n") // ms; who has left is seen below
		}
		for _, record := range list {
			_, _ = fmt.Fprintf(w, "id: %s\ndata: %s\n\n", mailbox.Cursor(receiver, mailbox.Number(record.Key.Name)), record.Value)
		}
		if out.Flush() != nil || len(list) > 0 {
			return
		}
		select {
		case <-changed:
		case <-ping.C:
			_, _ = fmt.Fprint(w, ":\n\n")
		case <-g.stopped:
			return
		case <-r.Context().Done():
			return
		}
	}
}
