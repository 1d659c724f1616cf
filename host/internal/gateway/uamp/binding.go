package uamp

import (
	"context"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// binding is how envelopes reach a partner, and how streams with answers are read from it
// (U-056, U-057). It is safe for concurrent use.
type binding interface {
	// post sends the envelope of an attempt, and sets its sent as soon as the partner has
	// taken it. A refusal that the partner has signed is a [signedRefusal].
	post(ctx context.Context, a *attempt) (posted, error)
	// streamAt resolves the address of a stream that post or an attempt before has returned.
	// It fails for one that the binding cannot read, or that is not the partner's.
	streamAt(address string) (string, error)
	// read gives the deltas of a stream that r does not have to r.take, until the stream
	// breaks off or r.take fails.
	read(ctx context.Context, r *streamReader, at string) error
	// acknowledge tells the partner that all deltas up to d have come (U-062). One that is
	// lost is made good by the next read.
	acknowledge(ctx context.Context, r *streamReader, d envelope.Delta)
}

// bind chooses how the partner is reached.
func (a *attempt) bind() error {
	if a.p.URL == "" || a.p.Client == nil {
		return gateway.Refuse("%s has no url: add it to [gateways.uamp.partners.%s]", a.p.Name, a.p.Name)
	}
	a.via = httpBinding{client: a.p.Client, base: a.p.URL, partner: a.p.Name}
	return nil
}
