package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"skep/host/internal/swarm"
)

// Actor is a gateway whose partners can be acted on within a turn: the actions with
// source = "gateway:NAME/VERB". Package verb has its verbs.
type Actor interface {
	Gateway
	// Act does a verb and returns its result, JSON. Its errors are a [Runtime]'s,
	// [ErrPartner], or the error of ctx.
	Act(ctx context.Context, p Partner, a Act) (json.RawMessage, error)
}

// ErrPartner is returned for what the partner did not do: it cannot be reached, says no,
// or failed.
var ErrPartner = errors.New("partner")

// Act is one call of a verb.
type Act struct {
	Verb string
	// Key is the same for each attempt of the call.
	Key string
	// Task is the task in whose turn it is done.
	Task swarm.TaskKey
	// Retry is set when an earlier attempt may have done it.
	Retry bool
	// Hops counts the swarms that the message has passed.
	Hops  int
	Trace swarm.Trace
	// Args are the arguments, which fit the verb's schema unless the operator's file has
	// another one.
	Args json.RawMessage
}

// VerbOf returns the verb of the action that wrote a message, by the message's
// routing_info; empty for mail of an agent.
func VerbOf(routing json.RawMessage) string {
	var info struct {
		Gateway struct {
			Type string `json:"type"`
		} `json:"gateway"`
	}
	_ = json.Unmarshal(routing, &info) // another form is no action's
	return info.Gateway.Type
}
