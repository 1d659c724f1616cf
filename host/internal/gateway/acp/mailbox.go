package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/mailbox"
	"skep/host/internal/gateway/state"
)

// entryOf is a message as a mailbox has it, for a realm that fetches its messages.
func entryOf(m message.Message, text []byte) (e mailbox.Entry, err error) {
	e.Receiver, e.ID = string(m.Header.Receiver), string(m.Header.ID)
	e.Digest, err = digest(m, text)
	return e, err
}

// readEntry reads a message of a mailbox.
func readEntry(text []byte) (e mailbox.Entry, err error) {
	var m message.Message
	if err = m.UnmarshalJSON(text); err == nil {
		e, err = entryOf(m, text)
	}
	return e, err
}

// keep puts a message into the mailbox of a realm, unless it is there.
func (g *Gateway) keep(ctx context.Context, c gateway.Caller, m message.Message, text []byte) (duplicate bool, err error) {
	e, err := entryOf(m, text)
	if err != nil {
		return false, err
	}
	return g.mailbox.Put(ctx, c, e, text)
}

// mailboxOf returns the caller of a request and the agent whose mailbox it reads. ok is
// false after a refusal.
func (g *Gateway) mailboxOf(w http.ResponseWriter, r *http.Request) (c gateway.Caller, receiver string, ok bool) {
	c, err := g.Runtime.Identify(r)
	if err != nil {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return c, "", false
	}
	receiver = r.URL.Query().Get("receiver")
	if receiver == "" {
		http.Error(w, "receiver is missing: give the id of the agent whose messages you read, as in ?receiver=ID", http.StatusBadRequest)
		return c, "", false
	}
	if err := g.checkSender(c, receiver); err != nil {
		f := g.faultOf(err)
		http.Error(w, f.text, f.httpStatus())
		return c, "", false
	}
	return c, receiver, true
}

// serveMailbox serves the messages that wait for one agent of a realm.
func (g *Gateway) serveMailbox(w http.ResponseWriter, r *http.Request) {
	c, receiver, ok := g.mailboxOf(w, r)
	if !ok {
		return
	}
	after, err := mailbox.ParseCursor(receiver, r.URL.Query().Get("after"))
	seconds, err2 := strconv.Atoi(cmp.Or(r.URL.Query().Get("wait"), "0"))
	if err != nil || err2 != nil || seconds < 0 {
		http.Error(w, fmt.Sprintf("after must be the next of an answer before to %.200q, and wait a number of seconds", receiver), http.StatusBadRequest)
		return
	}
	ctx, stop := context.WithTimeoutCause(r.Context(), min(time.Duration(min(seconds, 1<<20))*time.Second, g.Hold), gateway.ErrHeld)
	defer stop()
	for {
		list, changed, err := g.mailbox.Read(r.Context(), c, receiver, after)
		if err != nil {
			f := g.faultOf(err)
			http.Error(w, f.text, f.httpStatus())
			return
		}
		if len(list) > 0 {
			writeMailbox(w, receiver, list, after)
			return
		}
		select {
		case <-changed:
		case <-g.stopped:
			writeMailbox(w, receiver, nil, after)
			return
		case <-ctx.Done():
			if r.Context().Err() != nil {
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			writeMailbox(w, receiver, nil, after)
			return
		}
	}
}

// writeMailbox writes messages as they were put, and the cursor behind them.
func writeMailbox(w http.ResponseWriter, receiver string, list []state.Record, after int64) {
	answer := struct {
		Messages []json.RawMessage `json:"messages"`
		Next     string            `json:"next"`
	}{Messages: []json.RawMessage{}}
	for _, r := range list {
		answer.Messages = append(answer.Messages, r.Value)
		after = mailbox.Number(r.Key.Name)
	}
	answer.Next = mailbox.Cursor(receiver, after)
	w.Header().Set("Content-Type", jsonContentType)
	_ = json.NewEncoder(w).Encode(answer) // the caller may have left
}
