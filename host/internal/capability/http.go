package capability

import (
	"context"
	"slices"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// Fetcher makes HTTP requests within a policy. It is an *egress.Client, and safe
// for concurrent use.
type Fetcher interface {
	// Check answers what Fetch would refuse at once.
	Check(p egress.Policy, req abi.FetchRequest) *abi.Error
	Fetch(ctx context.Context, p egress.Policy, key string, req abi.FetchRequest) (abi.FetchResponse, *abi.Error)
}

// spent is what the requests of a turn have cost. It is safe for concurrent use.
type spent struct {
	fetches, bytes atomic.Int64
	// searches is for the turn's goroutine.
	searches int
}

// recall begins with what earlier attempts have cost: what was counted of them, or
// the answers they got, where the count died with its host.
func (s *spent) recall(p *swarm.Past, had swarm.Usage) {
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

func (s *spent) add(bytes int) {
	s.fetches.Add(1)
	s.bytes.Add(int64(bytes))
}

// charge adds it, and the cost of models, to what the turn has used otherwise.
func (s *spent) charge(out swarm.Outcome, cost swarm.Spend) swarm.Outcome {
	out.Usage.Fetches, out.Usage.FetchBytes = s.fetches.Load(), s.bytes.Load()
	out.Usage.Spend = cost
	if out.Record != nil && out.Record.End != nil {
		out.Record.End.Usage = out.Usage
	}
	return out
}

// fetch prepares a request. What needs no network to be refused never leaves the
// turn.
func (o *ops) fetch(_ context.Context, req []byte, _ bool) (work, *abi.Error) {
	if o.web == nil {
		return nil, unsupported(abi.OpHTTPFetch)
	}
	var ask abi.FetchRequest
	if fault := decode(abi.OpHTTPFetch, req, &ask); fault != nil {
		return nil, fault
	}
	policy := o.allow.HTTP
	if fault := o.web.Check(policy, ask); fault != nil {
		return nil, fault
	}
	web, used := o.web, o.spent
	return func(ctx context.Context, out *flight) *abi.Error {
		answer, fault := web.Fetch(ctx, policy, out.key, ask)
		if fault != nil {
			used.add(len(req))
			return fault
		}
		text, fault := plainJSON(abi.OpHTTPFetch, answer)
		if fault != nil {
			return fault
		}
		used.add(len(req) + len(text))
		return out.write(text)
	}, nil
}

// notTwice reports whether a request of the agent must not be sent again.
func (o *ops) notTwice([]byte) bool { return !o.allow.RetryInDoubt }

// secretExists tells of the agent's own secrets only.
func (o *ops) secretExists(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.SecretRequest
	if fault := decode(abi.OpSecretExists, req, &ask); fault != nil {
		return nil, fault
	}
	return encode(abi.OpSecretExists, abi.SecretResponse{Exists: slices.Contains(o.allow.Secrets, ask.Name)})
}
