package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// askerHere is a bare program that asks a provider from goroutines, until the
// parent closes in: POST /ask?n=N asks N questions that are held, GET /left is how
// many have no answer yet.
func askerHere(ctx context.Context, args []string, in io.Reader) error {
	if len(args) != 1 {
		return fmt.Errorf("asker wants the provider's address, got %q", args)
	}
	a := &asker{ctx: ctx, to: args[0]}
	defer a.client.CloseIdleConnections()
	return serveHere(a.handler(), in)
}

// asker asks with net/http and nothing around it.
type asker struct {
	ctx    context.Context
	to     string
	client http.Client
	left   atomic.Int64
	failed atomic.Pointer[error]
}

func (a *asker) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.left.Add(int64(n))
		for range n {
			go a.ask()
		}
	})
	mux.HandleFunc("GET /left", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.failed.Load(); err != nil {
			http.Error(w, (*err).Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(w, a.left.Load())
	})
	return mux
}

func (a *asker) ask() {
	if err := a.once(); err != nil {
		a.failed.Store(&err)
	}
	a.left.Add(-1)
}

func (a *asker) once() error {
	rsp, err := openaiAsk(a.ctx, &a.client, a.to, question{Tokens: 1, Hold: true}, true)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	_, err = io.Copy(io.Discard, rsp.Body)
	return err
}

// openaiAsk sends a question as a program would that has no library for it.
func openaiAsk(ctx context.Context, cl *http.Client, to string, q question, streamed bool) (*http.Response, error) {
	body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":%q}]}`, streamed, q.text())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	rsp, err := cl.Do(req)
	if err != nil {
		return nil, err
	}
	if rsp.StatusCode != http.StatusOK {
		defer rsp.Body.Close()
		text, _ := io.ReadAll(rsp.Body)
		return nil, fmt.Errorf("%s: %s", rsp.Status, text)
	}
	return rsp, nil
}
