package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
)

// askerJob is a program without a host that asks a provider, at the address of its
// argument, from goroutines: POST /ask?n=N asks N questions that are held, GET /left
// returns how many have no answer yet.
func askerJob(ctx context.Context, p pipe, args []string) error {
	a := &asker{ctx: ctx, to: args[0]}
	defer a.client.CloseIdleConnections()
	return p.serveHTTP(a.handler())
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
	return postTo(to+"/v1/chat/completions", body).with("Content-Type", "application/json").open(ctx, cl)
}
