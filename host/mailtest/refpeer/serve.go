package refpeer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

func (p *Peer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		uptime := p.uptime
		p.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{
			"name": "mail", "protocol_version": "1.3", "status": "running", "uptime": uptime,
			"swarm": map[string]any{
				"name": p.opt.Name, "version": "1.3.6", "description": "", "entrypoint": p.opt.Entrypoint, "keywords": []string{}, "public": false,
			},
		})
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"status": "healthy", "swarm_name": p.opt.Name, "timestamp": now()})
	})
	mux.HandleFunc("POST /interswarm/forward", func(w http.ResponseWriter, r *http.Request) { p.receive(w, r, false) })
	mux.HandleFunc("POST /interswarm/back", func(w http.ResponseWriter, r *http.Request) { p.receive(w, r, true) })
	mux.HandleFunc("POST /swarms", p.registerSwarm)
	return mux
}

// registerSwarm is the route by which an admin makes another swarm known. A volatile
// one, as which it is registered unless the caller says otherwise, no instance sees.
func (p *Peer) registerSwarm(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name      string
		BaseURL   string `json:"base_url"`
		AuthToken string `json:"auth_token"`
		Volatile  *bool
	}
	switch err := json.NewDecoder(r.Body).Decode(&in); {
	case p.opt.AdminKey == "" || r.Header.Get("Authorization") != "Bearer "+p.opt.AdminKey:
		answer(w, http.StatusUnauthorized, map[string]any{"detail": "invalid role"})
		return
	case err != nil || in.Name == "" || in.BaseURL == "":
		answer(w, http.StatusBadRequest, map[string]any{"detail": "name and base_url are required"})
		return
	}
	if in.Volatile != nil && !*in.Volatile {
		if err := p.Register(in.Name, in.BaseURL, in.AuthToken); err != nil {
			answer(w, http.StatusInternalServerError, map[string]any{"detail": "error registering swarm: '" + err.Error() + "'"})
			return
		}
	}
	answer(w, http.StatusOK, map[string]any{"status": "registered", "swarm_name": in.Name})
}

// refusal is an error that is answered with a status and a detail.
type refusal struct {
	status int
	detail string
}

func (r *refusal) Error() string { return r.detail }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// receive takes a wrapper and notes the exchange.
func (p *Peer) receive(w http.ResponseWriter, r *http.Request, back bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender is gone
	}
	var out bytes.Buffer
	kept := &keeper{ResponseWriter: w, out: &out, status: http.StatusOK}
	caller, err := p.caller(r)
	var got receipt
	if err == nil {
		got, err = p.take(caller, body, back)
	}
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		answer(kept, refused.status, map[string]any{"detail": refused.detail})
	case err != nil: // what no handler expects
		kept.Header().Set("Content-Type", "text/plain; charset=utf-8")
		kept.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(kept, "Internal Server Error")
	default:
		answer(kept, http.StatusOK, got.said)
	}
	p.note(Exchange{Path: r.URL.Path, Header: r.Header, Body: body, Status: kept.status, Answer: out.Bytes()})
	for _, m := range got.mail {
		if p.opt.Act != nil {
			p.jobs.Go(func() { p.opt.Act(p, m) })
		}
	}
}

// receipt is what a wrapper that was taken comes to.
type receipt struct {
	said map[string]any
	mail []Mail
}

// caller checks the key: only the header counts, and only this spelling of it.
func (p *Peer) caller(r *http.Request) (id string, err error) {
	header := r.Header.Get("Authorization")
	key, ok := strings.CutPrefix(header, "Bearer ")
	id = p.opt.Keys[key]
	switch {
	case header == "":
		return "", refuse(http.StatusUnauthorized, "no API key provided")
	case !ok:
		return "", refuse(http.StatusUnauthorized, "invalid API key format")
	case id == "":
		return "", refuse(http.StatusUnauthorized, "invalid API key")
	}
	return id, nil
}

// keeper keeps what is answered.
type keeper struct {
	http.ResponseWriter
	out    *bytes.Buffer
	status int
}

func (k *keeper) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *keeper) Write(b []byte) (int, error) {
	k.out.Write(b)
	return k.ResponseWriter.Write(b)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
