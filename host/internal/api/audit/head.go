package audit

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Acts of hosts that share a store, whose target is the name of the log's host. An entry of ActHeads has the heads
// of the others' logs.
const (
	ActJoin  = "cluster.join"
	ActHeads = "audit.heads"
)

// Head is an entry of a host's log that was its last one.
type Head struct {
	// Host is the name of the log's host, Address where the others reach it.
	Host    string `json:"host"`
	Address string `json:"address"`
	// Seq is the number of the entry, Hash its hash.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	// At is when the host made it known, by the clock of the store.
	At time.Time `json:"at"`
}

// headsPerEntry bounds the heads of an entry, so that it fits into a line.
const headsPerEntry = 16

// namePattern and hashPattern are the forms of a host's name and of a hash.
var (
	namePattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// IsName reports whether a text has the form of a host's name in the logs of others.
func IsName(s string) bool { return namePattern.MatchString(s) }

// valid reports whether h has the form of a head: others write to the store that hosts share. A printable text
// has at most twice its length in JSON, which has no years beyond 9999.
func (h Head) valid() bool {
	year := h.At.UTC().Year()
	return IsName(h.Host) && hashPattern.MatchString(h.Hash) && h.Seq > 0 && year > 0 && year <= 9999 &&
		len(h.Address) <= maxField && utf8.ValidString(h.Address) &&
		!strings.ContainsFunc(h.Address, func(r rune) bool { return !unicode.IsPrint(r) })
}

// validHeads returns the first heads that are valid, as many as fit into an entry.
func validHeads(heads []Head) (valid []Head) {
	for _, h := range heads {
		if h.valid() && len(valid) < headsPerEntry {
			h.At = h.At.UTC()
			valid = append(valid, h)
		}
	}
	return valid
}

// HeadTable has the last head of each host that shares a store.
type HeadTable interface {
	Heads(ctx context.Context) ([]Head, error)
	// KeepHead replaces the head of this host. Address and time are the table's to add.
	KeepHead(ctx context.Context, h Head) error
}

// HeadExchange makes the head of a host's log known to the others, and records theirs. One
// goroutine at a time uses it.
type HeadExchange struct {
	log   *Log
	table HeadTable
	name  string
	// known is the end of the log when its head was last made known, or when it had but heads
	// since: two hosts without acts would record each other's heads for ever.
	known chainEnd
	// seen has the heads in the table that are recorded, by host, and the one that this host has put there.
	seen map[string]chainEnd
	// invalid is how many rows of the table were no heads.
	invalid int
}

// NewHeadExchange returns the exchange of a host that has a name.
func NewHeadExchange(log *Log, table HeadTable, name string) *HeadExchange {
	return &HeadExchange{log: log, table: table, name: name, seen: map[string]chainEnd{}}
}

// headInterval is the time between two exchanges.
const headInterval = time.Minute

// Run exchanges heads every minute until ctx ends.
func (x *HeadExchange) Run(ctx context.Context) {
	tick := time.NewTicker(headInterval)
	defer tick.Stop()
	failed := false
	for {
		err := x.Exchange(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			x.log.opt.Logger.Warn("no exchange of heads with the other hosts' audit logs", "err", err)
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Finish writes what is queued and exchanges heads for the last time before the log is closed.
func (x *HeadExchange) Finish(ctx context.Context) error {
	x.log.refusals.forceSummary()
	if err := x.log.flush(); err != nil {
		return err
	}
	return x.Exchange(ctx)
}

// Exchange records the heads of others that have changed, and makes this log's known.
func (x *HeadExchange) Exchange(ctx context.Context) error {
	heads, err := x.table.Heads(ctx)
	if err != nil {
		return fmt.Errorf("read the heads of audit logs: %w", err)
	}
	recorded, err := x.recordHeads(heads)
	if err != nil {
		return err
	}
	end, err := x.log.durableEnd()
	if err != nil {
		return err
	}
	if x.known.seq > 0 && end.seq == x.known.seq+recorded {
		x.known = end
		return nil
	}
	if err := x.table.KeepHead(ctx, Head{Host: x.name, Seq: end.seq, Hash: end.head}); err != nil {
		return fmt.Errorf("make the head of the audit log known: %w", err)
	}
	x.known, x.seen[x.name] = end, end
	return nil
}

// recordHeads records what has changed, and returns how many entries have nothing but heads.
func (x *HeadExchange) recordHeads(heads []Head) (recorded int64, err error) {
	changed, err := x.findChanged(heads)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(changed, headsPerEntry) {
		if err := x.log.Record(Entry{Act: ActHeads, Outcome: Done, Target: x.name, Heads: some}); err != nil {
			return recorded, err
		}
		recorded++
		for _, h := range some {
			if h.Host != x.name && x.seen[h.Host].seq > h.Seq {
				x.log.opt.Logger.Error("the audit log of another host has become shorter; `skep audit verify` with the logs of all hosts tells more", "host", h.Address, "was", x.seen[h.Host].seq, "is", h.Seq)
			}
			x.seen[h.Host] = chainEnd{h.Seq, h.Hash}
		}
	}
	return recorded, nil
}

// findChanged returns the heads that are not recorded. The own one is among them unless this process has put it
// there: KeepHead replaces it, and with it the only trace of entries that were cut while the host was down.
func (x *HeadExchange) findChanged(heads []Head) (changed []Head, err error) {
	found, invalid := map[string]bool{}, 0
	for _, h := range heads {
		if !h.valid() {
			invalid++
			continue
		}
		found[h.Host] = true
		if x.seen[h.Host] == (chainEnd{h.Seq, h.Hash}) {
			continue
		}
		if h.Host == x.name {
			if err := x.checkOwn(h); err != nil {
				return nil, err
			}
		}
		changed = append(changed, h)
	}
	maps.DeleteFunc(x.seen, func(host string, _ chainEnd) bool { return !found[host] && host != x.name })
	if invalid > x.invalid {
		x.log.opt.Logger.Error("the table audit_heads of the server has rows that no host has written; they are left out", "rows", invalid)
	}
	x.invalid = invalid
	return changed, nil
}

// checkOwn records that the log lacks what this host has made known of it.
func (x *HeadExchange) checkOwn(h Head) error {
	end, err := x.log.durableEnd()
	if err != nil || h.Seq < end.seq || h.Seq == end.seq && h.Hash == end.head {
		return err
	}
	x.log.opt.Logger.Error("the audit log lacks entries that the shared store has the head of", "last", h.Seq, "found", end.seq)
	reason := fmt.Sprintf("entry %d with the hash %s, which this host made known at %s, was gone, unless another host has a copy of this data directory; the log ended with entry %d",
		h.Seq, h.Hash, h.At.UTC().Format(timeFormat), end.seq)
	return x.log.Record(Entry{Act: actRepair, Outcome: Failed, Reason: reason})
}

// durableEnd returns the end of the log once it is on disk, with what other processes have written.
func (l *Log) durableEnd() (chainEnd, error) {
	if err := l.write(nil, 0, true); err != nil {
		return chainEnd{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.sync()
}
