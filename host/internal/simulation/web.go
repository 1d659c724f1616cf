package simulation

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
)

// maxCost is the most that a call of the model costs, in tokens.
const maxCost = 100

// web is the world outside: a server that counts effects, and a model that costs.
type web struct {
	world *world

	mu sync.Mutex
	// keys are the idempotency keys under which an effect came, by its mark.
	keys map[string]map[string]bool
	// reserved is the day on which a call of the model was prepared, by its mark, and spent
	// the cost of calls by tenant and day.
	reserved map[string]int64
	billed   map[string]bool
	spent    map[tenantDay]int64
}

type tenantDay struct {
	tenant string
	day    int64
}

func newWeb(w *world) *web {
	return &web{world: w, keys: map[string]map[string]bool{}, reserved: map[string]int64{}, billed: map[string]bool{}, spent: map[tenantDay]int64{}}
}

func (*web) Check(egress.Policy, abi.FetchRequest) *abi.Error { return nil }

// Fetch carries an effect out. Its answer may be lost.
func (e *web) Fetch(ctx context.Context, _ egress.Policy, key string, req abi.FetchRequest) (abi.FetchResponse, *abi.Error) {
	mark := strings.TrimPrefix(req.URL, "http://web.test/")
	h := e.world.living()
	e.world.delayAnswer(ctx)
	p := h.park("web "+mark, stepGate)
	if p.fault == hostDied || ctx.Err() != nil {
		return abi.FetchResponse{}, abi.Errorf(abi.CodeCancelled, abi.OpHTTPFetch, "cancelled", "stopped")
	}
	e.mu.Lock()
	if e.keys[mark] == nil {
		e.keys[mark] = map[string]bool{}
	}
	e.keys[mark][key] = true
	twice := len(e.keys[mark]) > 1
	e.mu.Unlock()
	if twice && !e.world.ledger.isRenewed(mark) {
		e.world.violate("effect %s is made twice, under two keys", mark)
	}
	if p.roll%6 == 0 {
		return abi.FetchResponse{}, abi.Errorf(abi.CodeUnavailable, abi.OpHTTPFetch, "network", "the answer is lost")
	}
	return abi.FetchResponse{Status: 200, Body: "ok"}, nil
}

// Name implements [capability.Model].
func (e *web) Name() string { return "web" }

// MaxCost notes when the call is prepared: its cost is reserved next.
func (e *web) MaxCost(req abi.ChatRequest) swarm.Spend {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.reserved[callMark(req)]; !ok {
		e.reserved[callMark(req)] = today()
	}
	return swarm.Spend{Tokens: maxCost}
}

// Chat answers at a cost. Only a call that was prepared on the same day counts for it:
// for others the day is not certain.
func (e *web) Chat(ctx context.Context, req abi.ChatRequest, _ string, _ func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *capability.ModelFault) {
	mark := callMark(req)
	began := today()
	h := e.world.living()
	e.world.delayAnswer(ctx)
	p := h.park("model "+mark, stepGate)
	if p.fault == hostDied || ctx.Err() != nil {
		return abi.ChatResponse{}, swarm.Spend{}, &capability.ModelFault{Fault: abi.Errorf(abi.CodeCancelled, abi.OpLLMChat, "cancelled", "stopped")}
	}
	cost := int64(len(mark)*7%80 + 20)
	e.mu.Lock()
	tenant, _, _ := strings.Cut(mark, " ")
	at := tenantDay{tenant, began}
	if e.reserved[mark] == began && !e.billed[mark] {
		e.billed[mark] = true
		e.spent[at] += cost
	}
	spent := e.spent[at]
	e.mu.Unlock()
	if bound := e.world.quotas[tenant].Quota.SpendPerDay.Tokens; bound > 0 && spent > bound {
		e.world.violate("tenant %s has spent %d tokens of %d on day %d", tenant, spent, bound, began)
	}
	return abi.ChatResponse{Text: "yes", ToolCalls: []abi.ChatCall{}, Finish: "stop"}, swarm.Spend{Tokens: cost}, nil
}

// forget forgets what a tenant has spent and reserved: it begins anew after its erasure.
func (e *web) forget(tenant string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.spent, func(at tenantDay, _ int64) bool { return at.tenant == tenant })
	for mark := range e.reserved {
		if strings.HasPrefix(mark, tenant+" ") {
			e.reserved[mark] = -1 // no day
		}
	}
}

func callMark(req abi.ChatRequest) string {
	if len(req.Messages) == 0 {
		return ""
	}
	return req.Messages[0].Content
}

func today() int64 { return time.Now().Unix() / 86400 }
