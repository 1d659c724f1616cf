package swarm

import (
	"sync"

	"skep/abi"
)

// freeTurnBuffer is what each turn may hold in the host without asking the others, in
// bytes.
const freeTurnBuffer = 1 << 20

// turnBuffers bounds what all running turns hold in the host's memory beyond
// freeTurnBuffer each: answers that they have not read, and blobs before their commit.
type turnBuffers struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	tenants map[string]int64
}

func newTurnBuffers(limit int64) *turnBuffers {
	return &turnBuffers{limit: limit, tenants: map[string]int64{}}
}

// reserve reserves bytes for a tenant, which has half of all at most. A forced
// reservation succeeds in any case.
func (b *turnBuffers) reserve(tenant string, n int64, forced bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !forced && (b.used+n > b.limit || b.tenants[tenant]+n > b.limit/2) {
		return false
	}
	b.used += n
	b.tenants[tenant] += n
	return true
}

func (b *turnBuffers) release(tenant string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.tenants[tenant] -= n; b.tenants[tenant] == 0 {
		delete(b.tenants, tenant)
	}
}

// TurnBuffer counts what one turn holds. It is safe for concurrent use.
type TurnBuffer struct {
	all    *turnBuffers
	tenant string

	mu sync.Mutex
	// held are all bytes, shared the part that is reserved in the buffers of all turns.
	held, shared int64
	closed       bool
}

// Buffer counts what the host holds for the turn.
func (t *Turn) Buffer() *TurnBuffer { return t.buffer }

// HoldBytes counts bytes that the host keeps for the turn, until ReleaseBytes or the
// turn's end. It reports false, and counts nothing, when the turns of the tenant or of
// the host hold too much.
func (b *TurnBuffer) HoldBytes(n int64) bool { return b.hold(n, false) }

func (b *TurnBuffer) hold(n int64, forced bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := max(0, b.held+n-freeTurnBuffer) - b.shared
	if b.closed || more > 0 && !b.all.reserve(b.tenant, more, forced) {
		return false
	}
	b.held += n
	b.shared += max(0, more)
	return true
}

// ReleaseBytes returns bytes that HoldBytes has counted.
func (b *TurnBuffer) ReleaseBytes(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.held -= n
	if less := b.shared - max(0, b.held-freeTurnBuffer); less > 0 {
		b.shared -= less
		b.all.release(b.tenant, less)
	}
}

// close returns all that the turn holds.
func (b *TurnBuffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shared > 0 {
		b.all.release(b.tenant, b.shared)
	}
	b.held, b.shared, b.closed = 0, 0, true
}

// TurnBuffersFault is the error of an op for which HoldBytes has refused.
func TurnBuffersFault(op abi.Op) *abi.Error {
	return abi.Errorf(abi.CodeLimit, op, "turn_buffers", "the running turns hold too many bytes of unread answers and uncommitted blobs; the limit is [limits] turn_buffers, of which a tenant has half")
}
