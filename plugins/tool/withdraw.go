package main

import (
	"errors"
	"slices"

	skep "skep/sdk/go"
)

// withdrawn is the agent's state: the requests that were withdrawn, by their message ids. Those that
// had run by then stay in it until later ones push them out.
type withdrawn struct {
	IDs []string `json:"withdrawn,omitempty"`
}

// Bounds of the state: how many withdrawn requests are known, as a workflow has at most 32 under
// way, and the bytes of an id, of which the host's have 36.
const (
	maxWithdrawn = 64
	maxID        = 64
)

// errWithdrawn answers a request that was withdrawn before its turn.
var errWithdrawn = errors.New("the request was withdrawn before it ran")

// withdraw notes a request that waits behind its interrupt. The interrupt has no answer: it would be
// one to the request.
func withdraw(t *skep.Turn, id string) error {
	if id == "" || len(id) > maxID {
		t.Log("an interrupt that withdraws no request", "from", t.Message.Sender.Name)
		return nil
	}
	var w withdrawn
	if err := t.State(&w); err != nil {
		return err
	}
	w.IDs = append(w.IDs, id)
	w.IDs = w.IDs[max(0, len(w.IDs)-maxWithdrawn):]
	return t.SetState(w)
}

// takeWithdrawn reports whether the turn's request was withdrawn, and forgets it then.
func takeWithdrawn(t *skep.Turn) (bool, error) {
	var w withdrawn
	if err := t.State(&w); err != nil {
		return false, err
	}
	i := slices.Index(w.IDs, t.Message.ID)
	if i < 0 || t.Message.ID == "" {
		return false, nil
	}
	w.IDs = slices.Delete(w.IDs, i, i+1)
	return true, t.SetState(w)
}
