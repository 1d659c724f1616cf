package door

import (
	"context"
	"errors"

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
	return foreignError(ctx, d.opt.Swarm.ShowForeign(ctx, of.Task, of.Wrapper.Payload.Recipient().Name, req))
}

// Waits is [gateway.Runtime]'s.
func (d *Door) Waits(ctx context.Context, of swarm.Delivery) (bool, error) {
	waits, err := d.opt.Swarm.IsOpenRequest(ctx, of.Task, of.Wrapper.Payload.ID)
	if errors.Is(err, swarm.ErrNotFound) {
		return false, nil
	}
	return waits, foreignError(ctx, err)
}
