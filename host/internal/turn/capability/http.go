package capability

import (
	"context"
	"slices"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
)

// Fetcher makes HTTP requests within a policy, like an *egress.Client. It is safe for
// concurrent use.
type Fetcher interface {
	// Check returns the error of Fetch for a request that needs no network to be refused.
	Check(p egress.Policy, req abi.FetchRequest) *abi.Error
	Fetch(ctx context.Context, p egress.Policy, key string, req abi.FetchRequest) (abi.FetchResponse, *abi.Error)
}

// requestCosts counts the requests of a turn. It is safe for concurrent use.
type requestCosts struct {
	fetches, bytes atomic.Int64
	// searches is used by the turn's goroutine only.
	searches int
}

// loadPrior starts with the costs of earlier attempts: the counted ones, or the recorded
// answers if the count died with its host.
func (s *requestCosts) loadPrior(p *swarm.PriorAttempt, had swarm.Usage) {
	if p == nil {
		return
	}
	for _, e := range p.Entries {
		if e.Op == abi.OpHTTPFetch && e.Kind == swarm.EntryAnswer {
			s.add(len(e.Answer))
		}
	}
	s.fetches.Store(max(s.fetches.Load(), had.Fetches))
	s.bytes.Store(max(s.bytes.Load(), had.FetchBytes))
}

func (s *requestCosts) add(bytes int) {
	s.fetches.Add(1)
	s.bytes.Add(int64(bytes))
}

// charge adds the costs, and the cost of models, to the turn's usage.
func (s *requestCosts) charge(out swarm.Outcome, cost swarm.Spend) swarm.Outcome {
	out.Usage.Fetches, out.Usage.FetchBytes = s.fetches.Load(), s.bytes.Load()
	out.Usage.Spend = cost
	if out.Record != nil && out.Record.End != nil {
		out.Record.End.Usage = out.Usage
	}
	return out
}

// fetch prepares a request. A request that needs no network to be refused never leaves the
// turn.
func (o *ops) fetch(_ context.Context, req []byte, _ bool) (effectFunc, *abi.Error) {
	if o.fetcher == nil {
		return nil, unsupported(abi.OpHTTPFetch)
	}
	var ask abi.FetchRequest
	if fault := decode(abi.OpHTTPFetch, req, &ask); fault != nil {
		return nil, fault
	}
	policy := o.allow.HTTP
	if fault := o.fetcher.Check(policy, ask); fault != nil {
		return nil, fault
	}
	web, used, size := o.fetcher, o.costs, len(req)
	return func(ctx context.Context, out *asyncOp) *abi.Error {
		answer, fault := web.Fetch(ctx, policy, out.key, ask)
		if fault != nil {
			used.add(size)
			return fault
		}
		text, fault := encodeUnescaped(abi.OpHTTPFetch, answer)
		if fault != nil {
			return fault
		}
		used.add(size + len(text))
		return out.write(text)
	}, nil
}

// retryForbidden reports whether a request of the agent must not be sent again.
func (o *ops) retryForbidden([]byte) bool { return !o.allow.RetryInDoubt }

// secretExists reports on the agent's own secrets only.
func (o *ops) secretExists(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.SecretRequest
	if fault := decode(abi.OpSecretExists, req, &ask); fault != nil {
		return nil, fault
	}
	return encode(abi.OpSecretExists, abi.SecretResponse{Exists: slices.Contains(o.allow.Secrets, ask.Name)})
}
