package audit

import (
	"context"
	"fmt"
	"time"
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

// truncateHeads bounds the texts of heads.
func truncateHeads(heads []Head) []Head {
	out := make([]Head, 0, min(len(heads), headsPerEntry))
	for _, h := range heads[:min(len(heads), headsPerEntry)] {
		out = append(out, Head{truncate(h.Host), truncate(h.Address), h.Seq, truncate(h.Hash), h.At.UTC()})
	}
	return out
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
	seen  map[string]chainEnd
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
	x.known = end
	return nil
}

// recordHeads records what has changed, and returns how many entries have nothing but others' heads.
func (x *HeadExchange) recordHeads(heads []Head) (recorded int64, err error) {
	var changed []Head
	for _, h := range heads {
		switch {
		case h.Host == x.name:
			err = x.checkOwn(h)
		case x.seen[h.Host] != chainEnd{h.Seq, h.Hash}:
			changed = append(changed, h)
		}
		if err != nil {
			return 0, err
		}
	}
	for len(changed) > 0 {
		n := min(len(changed), headsPerEntry)
		if err := x.log.Record(Entry{Act: ActHeads, Outcome: Done, Target: x.name, Heads: changed[:n]}); err != nil {
			return recorded, err
		}
		recorded++
		for _, h := range changed[:n] {
			if x.seen[h.Host].seq > h.Seq {
				x.log.opt.Logger.Error("the audit log of another host has become shorter; `skep audit verify` with the logs of all hosts tells more", "host", h.Address, "was", x.seen[h.Host].seq, "is", h.Seq)
			}
			x.seen[h.Host] = chainEnd{h.Seq, h.Hash}
		}
		changed = changed[n:]
	}
	return recorded, nil
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
	if err := l.write(nil, true); err != nil {
		return chainEnd{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.sync()
}
