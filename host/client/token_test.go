package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	const one = `{"id":"i1","tenant":"default","role":"user","principal":"alice","label":"l","by":"b","state":"valid","created":"2026-11-20T15:52:40.084847+00:00","expires":null,"last_used":null,"revoked":null}`
	var asked []string
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.String()+" "+string(body))
		switch {
		case r.Method == http.MethodPost:
			reply(w, http.StatusCreated, `{"token":"skep_x",`+one[1:])
		case r.Method == http.MethodDelete:
			reply(w, http.StatusOK, one)
		case r.URL.Query().Get("after") == "":
			reply(w, http.StatusOK, `{"tokens":[`+one+`],"next":"i1"}`)
		default:
			reply(w, http.StatusOK, `{"tokens":[`+strings.Replace(one, "i1", "i2", 1)+`],"next":null}`)
		}
	})
	never := int64(0)
	made, err := c.CreateToken(t.Context(), TokenWish{Role: "user", ID: "alice", TTL: &never})
	if err != nil || made.Text != "skep_x" || made.Principal != "alice" || made.Expires != nil || made.Created.IsZero() {
		t.Errorf("CreateToken = %+v, %v", made, err)
	}
	list, err := c.Tokens(t.Context(), "acme")
	if err != nil || len(list) != 2 || list[1].ID != "i2" {
		t.Errorf("Tokens = %+v, %v", list, err)
	}
	if gone, err := c.RevokeToken(t.Context(), "a/b"); err != nil || gone.ID != "i1" {
		t.Errorf("RevokeToken = %+v, %v", gone, err)
	}
	want := []string{
		`POST /skep/v1/tokens {"role":"user","id":"alice","ttl_seconds":0}`,
		"GET /skep/v1/tokens?limit=1000&tenant=acme ", "GET /skep/v1/tokens?after=i1&limit=1000&tenant=acme ",
		"DELETE /skep/v1/tokens/a%2Fb ",
	}
	if got, want := fmt.Sprintf("%q", asked), fmt.Sprintf("%q", want); got != want {
		t.Errorf("asked\n%s, want\n%s", got, want)
	}
}

// A token is not made twice when an answer is lost.
func TestCreateTokenOnce(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		reply(w, http.StatusServiceUnavailable, `{"detail":"later"}`)
	})
	_, err := c.CreateToken(t.Context(), TokenWish{Role: "user", ID: "alice"})
	var refused *Error
	if !errors.As(err, &refused) || n.Load() != 1 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}
