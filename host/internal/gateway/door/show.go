package door

import (
	"context"
	"errors"
	"slices"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// Show is [gateway.Runtime]'s.
func (d *Door) Show(ctx context.Context, of swarm.Delivery, piece gateway.Piece) error {
	req := abi.EmitRequest{Chunk: &piece.Text}
	if piece.Kind == gateway.Progress {
		req = abi.EmitRequest{Progress: &abi.Progress{Text: piece.Text, Fraction: piece.Fraction}}
	}
	return foreignError(d.opt.Swarm.ShowForeign(ctx, of.Task, of.Wrapper.Payload.Recipient().Name, req))
}

// Waits is [gateway.Runtime]'s.
func (d *Door) Waits(ctx context.Context, of swarm.Delivery) (bool, error) {
	snap, err := d.opt.Swarm.Task(ctx, of.Task)
	if errors.Is(err, swarm.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, foreignError(err)
	}
	return slices.ContainsFunc(snap.Task.Requests, func(r swarm.OpenRequest) bool { return r.ID == of.Wrapper.Payload.ID }), nil
}
