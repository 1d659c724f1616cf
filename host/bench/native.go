package main

import (
	"context"
	"encoding/json"
	"strings"

	"skep/abi"
	"skep/host/internal/turn"
)

// native is an agent in the host's own code: what a message then costs is the
// runtime's part, which a sandbox would hide. Its ops are journaled as a guest's.
type native func(ctx context.Context, ops turn.Ops) *abi.Error

// Digest names no module; nothing is ever loaded by it.
func (native) Digest() string { return strings.Repeat("0", 64) }

// Turn runs the agent.
func (n native) Turn(ctx context.Context, t turn.Turn) turn.Result {
	if fault := n(ctx, t.Ops); fault != nil {
		return turn.Result{Exit: &turn.Exit{Kind: turn.ExitHost, Message: fault.Message, Cause: context.Cause(ctx)}}
	}
	return turn.Result{}
}

// request makes an op with a request of any shape.
func request(ctx context.Context, ops turn.Ops, op abi.Op, args any) *abi.Error {
	raw, err := json.Marshal(args)
	if err != nil {
		return abi.Errorf(abi.CodeInvalid, op, "json", "%v", err)
	}
	_, fault := ops.Call(ctx, op, raw)
	return fault
}

// tool makes a mail call.
func tool(ctx context.Context, ops turn.Ops, name string, args map[string]string) *abi.Error {
	raw, err := json.Marshal(args)
	if err != nil {
		return abi.Errorf(abi.CodeInvalid, abi.OpMail, "json", "%v", err)
	}
	return request(ctx, ops, abi.OpMail, abi.MailRequest{Tool: name, Args: raw})
}

// completes is the trivial turn: it answers the user.
func completes(ctx context.Context, ops turn.Ops) *abi.Error {
	return tool(ctx, ops, "task_complete", map[string]string{"finish_message": "boss got [q] hello"})
}

// gate holds an agent's turns until each is let through.
type gate struct{ arrived, through chan struct{} }

func newGate() gate { return gate{make(chan struct{}), make(chan struct{})} }

// hold is what a turn does before its own work.
func (g gate) hold(ctx context.Context) {
	select {
	case g.arrived <- struct{}{}:
	case <-ctx.Done():
		return
	}
	select {
	case <-g.through:
	case <-ctx.Done():
	}
}
