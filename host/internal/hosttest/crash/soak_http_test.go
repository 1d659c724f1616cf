package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"skep/host/client"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/amp/amptest"
)

// callers are one for each way to ask.
func (s *soak) callers() []*soakCaller {
	list := []*soakCaller{s.userCaller(), s.a2aCaller(), s.acpCaller(), s.ampCaller(), s.ampSocketCaller(), s.iacpCaller(), s.mcpCaller(), s.uampCaller()}
	if s.broker != nil {
		list = append(list, s.ampQueueCaller())
	}
	return list
}

// soakHTTP is a client of Hive that cuts its connection when a time is over.
type soakHTTP struct {
	*http.Transport
	url, key string
}

func (s *soak) http(path, key string) soakHTTP {
	return soakHTTP{s.e.Transport(s.t), s.e.URL(s.e.Hive) + path, key}
}

// within is a client whose requests may take a time.
func (h soakHTTP) within(limit time.Duration) *http.Client {
	return &http.Client{Transport: h.Transport, Timeout: limit}
}

// do makes a request, and returns what is answered with a status below 300.
func (h soakHTTP) do(limit time.Duration, method, url, body string, header ...string) (*http.Response, string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rsp, err := h.within(limit).Do(req)
	if err != nil {
		return nil, "", err
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err == nil && rsp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", rsp.Status, text)
	}
	return rsp, string(text), err
}

// spoil posts what is no JSON. It is refused by a status of the client, or by a JSON-RPC error.
func (h soakHTTP) spoil(header ...string) func() error {
	return func() error {
		rsp, text, err := h.do(soakLimit, http.MethodPost, h.url, `{"nonsense":`, header...)
		switch {
		case rsp == nil:
			return err
		case rsp.StatusCode >= 500 || rsp.StatusCode < 400 && !strings.Contains(text, `"error"`):
			return fmt.Errorf("%w: %s: %s", errTaken, rsp.Status, text)
		}
		return nil
	}
}

// userCaller asks desk, whose question passes both hosts over all protocols.
func (s *soak) userCaller() *soakCaller {
	c, h := s.e.Client(soakUserKey, ""), s.http("/message", soakUserKey)
	return &soakCaller{name: "all", leave: h.CloseIdleConnections, spoil: h.spoil(), prepare: func(id, text string) func(time.Duration) (string, error) {
		return func(limit time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(s.t.Context(), limit)
			defer cancel()
			a, err := c.PostMessage(ctx, client.Post{Task: id, Key: "key-" + id, Body: text})
			return a.Body, err
		}
	}}
}

func (s *soak) a2aCaller() *soakCaller {
	h := s.http("/a2a/hive/goal", soakKey+"a2a")
	return &soakCaller{name: "a2a", leave: h.CloseIdleConnections, spoil: h.spoil("A2A-Version", "1.0"), prepare: func(id, text string) func(time.Duration) (string, error) {
		body := jsonText(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{
			"message": map[string]any{"messageId": id, "role": "ROLE_USER", "parts": []any{map[string]any{"text": text}}},
		}})
		return func(limit time.Duration) (string, error) {
			_, answer, err := h.do(limit, http.MethodPost, h.url, body, "A2A-Version", "1.0")
			if err == nil && !strings.Contains(answer, "TASK_STATE_COMPLETED") {
				err = errors.New(answer)
			}
			return answer, err
		}
	}}
}

func (s *soak) acpCaller() *soakCaller {
	h := s.http("/acp/v1/messages", soakKey+"acp")
	return &soakCaller{name: "acp", leave: h.CloseIdleConnections, spoil: h.spoil(), prepare: func(id, text string) func(time.Duration) (string, error) {
		q := acptest.New("REQUEST", "guest-1", "goal", text)
		q.Header.ID, q.Header.ConversationID = id, id
		return func(limit time.Duration) (string, error) {
			r, err := acptest.Client{URL: h.url, Token: h.key, HTTP: h.within(limit)}.Send(q.Text())
			if err == nil && (r.Message == nil || r.Message.Header.Type != "RESPONSE") {
				err = errors.New(r.Text)
			}
			return r.Text, err
		}
	}}
}

// ampQuestion is a question to goal in a conversation of its own.
func ampQuestion(from, id, text string) amptest.Message {
	q := amptest.Mail(from, "goal@hive", text)
	q.Message.ID, q.Message.Source.SessionID = id, id
	return q
}

func (s *soak) ampCaller() *soakCaller {
	h := s.http("/amp/v1/invoke", soakKey+"amp")
	return &soakCaller{name: "amp", leave: h.CloseIdleConnections, spoil: h.spoil(), prepare: func(id, text string) func(time.Duration) (string, error) {
		q := ampQuestion("guest-1", id, text)
		return func(limit time.Duration) (string, error) {
			r, err := amptest.Client{URL: h.url, Token: h.key, HTTP: h.within(limit)}.Send(q)
			if err == nil && (r.Message == nil || r.Message.Message.Type != "response") {
				err = errors.New(r.Text)
			}
			return r.Text, err
		}
	}}
}

func jsonText(value any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err)
	}
	return text.String()
}
