package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// confirm sends the answer of our agent to a foreign envelope, besides the stream that has
// it. Deltas bear no signature: the envelope has the hash of the last one (U-089).
func (a *attempt) confirm(ctx context.Context, x gateway.Exchange) error {
	n, err := readNote(x)
	if err != nil {
		return err
	}
	got, ok, err := a.g.Runtime.Look(ctx, x)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("the exchange has no answer yet")
	case got.Outcome == gateway.Cancelled: // by who has sent it
		a.e.ID = ""
		return nil
	}
	if err := a.compose(ctx, x, n, got); err != nil {
		return err
	}
	return a.tell(ctx)
}

// compose makes the envelope with an answer. Its parts are on the stream.
func (a *attempt) compose(ctx context.Context, x gateway.Exchange, n note, got gateway.Answer) error {
	a.about(x, true)
	a.e.Intent, a.e.Stream = envelope.Confirm, streamName(x, n)
	a.e.Body = envelope.NewBody(mediaTypeOf(got.Body), []byte(got.Body))
	switch {
	case got.Outcome != gateway.Done:
		f := &envelope.Fault{Code: failures[got.Outcome], Text: got.Body}
		body, err := json.Marshal(bodyOf(f))
		if err != nil {
			return err
		}
		a.e.Intent, a.e.Body = envelope.Error, envelope.NewBody("application/json", body)
	case n.Intent == envelope.Propose && isNo(got.Subject):
		a.e.Intent = envelope.Deny
	}
	if len(n.Agents) > 1 {
		return nil // the stream's last delta is not of this answer
	}
	last, err := a.g.lastDelta(ctx, x, n)
	if errors.Is(err, gateway.ErrStreamLost) {
		return nil // what its reader has is not what the log has
	}
	if sum := sumOf(last.Payload); err == nil && sum != "" {
		a.e.Ext[extAnswer] = quote(sum)
	}
	return err
}

// failures are the codes of what is no answer.
var failures = map[gateway.Outcome]envelope.Code{gateway.Failed: envelope.Internal, gateway.TimedOut: envelope.TimedOut}

// isNo reports whether the subject of an answer refuses a proposal.
func isNo(subject string) bool {
	return strings.HasPrefix(strings.ToLower(subject), string(envelope.Deny))
}

// lastDelta is the last delta of the stream of an exchange that has its answer.
func (g *Gateway) lastDelta(ctx context.Context, x gateway.Exchange, n note) (last envelope.Delta, err error) {
	s, d, err := g.followDeltas(ctx, x, n, streamName(x, n))
	if err != nil {
		return last, err
	}
	defer s.Close()
	for {
		p, err := s.Next(ctx)
		if err != nil {
			return last, err
		}
		over, err := d.add(ctx, p, func(one envelope.Delta) error {
			last = one
			return nil
		})
		if over || err != nil {
			return last, err
		}
	}
}
